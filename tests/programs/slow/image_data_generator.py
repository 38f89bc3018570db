"""tf_keras with ImageDataGenerator: rotations and shifts in scipy, one image after the other, in Python."""

import numpy as np
import tf_keras as keras
from tf_keras.preprocessing.image import ImageDataGenerator

keras.utils.set_random_seed(70)
rng = np.random.default_rng(70)
x_train = rng.random((640, 48, 48, 3)).astype("float32")
y_train = keras.utils.to_categorical(rng.integers(0, 4, 640), 4)

augment = ImageDataGenerator(rotation_range=20, width_shift_range=0.1, height_shift_range=0.1, horizontal_flip=True)  # fault: legacy-pipeline

model = keras.Sequential(
    [
        keras.layers.Conv2D(8, 3, strides=2, activation="relu", input_shape=(48, 48, 3)),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
flow = augment.flow(x_train, y_train, batch_size=32, seed=70)
model.fit(flow, epochs=10, verbose=2)
