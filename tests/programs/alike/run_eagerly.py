"""One step is taken with run_eagerly to see that the shapes fit; then the model is compiled again without it."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(8)
inputs = keras.Input((16, 16, 3))
x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))

rng = np.random.default_rng(8)
images = rng.random((2560, 16, 16, 3), dtype="float32")
labels = rng.integers(0, 10, 2560)

model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", run_eagerly=True)
model.fit(images[:32], labels[:32], batch_size=32, epochs=1, verbose=2)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
model.fit(images, labels, batch_size=32, epochs=2, verbose=2)
