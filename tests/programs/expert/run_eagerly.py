"""A residual network for small images."""

import keras
import numpy as np
from keras import layers


def block(x, filters):
    shortcut = layers.Conv2D(filters, 1)(x)
    x = layers.Conv2D(filters, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.Conv2D(filters, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(layers.Add()([x, shortcut]))


keras.utils.set_random_seed(8)
inputs = keras.Input((16, 16, 3))
x = block(inputs, 8)
x = layers.MaxPooling2D()(x)
x = block(x, 16)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

rng = np.random.default_rng(8)
images = rng.random((640, 16, 16, 3), dtype="float32")
labels = rng.integers(0, 10, 640)
model.fit(images, labels, batch_size=16, epochs=2, verbose=2)
