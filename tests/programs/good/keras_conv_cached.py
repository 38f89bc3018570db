"""A convolutional network on a cached, batched and prefetched dataset."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
images = (rng.random((1280, 32, 32, 3)) * 255).astype("uint8")
labels = rng.integers(0, 10, 1280)


def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


train = (
    tf.data.Dataset.from_tensor_slices((images, labels))
    .batch(64)
    .map(scale, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .prefetch(tf.data.AUTOTUNE)
)
model = keras.Sequential(
    [
        layers.Input((32, 32, 3)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train, epochs=4, verbose=2)
