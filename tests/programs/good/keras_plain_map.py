"""fit on a dataset with a plain stateless map: no prefetch and no parallel calls written, and none needed.

TensorFlow makes such a map parallel and prefetches by itself; a tool that asks for it is wrong.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
images = rng.integers(0, 255, (1280, 32, 32, 3), dtype="uint8")
labels = rng.integers(0, 10, 1280)


def standardise(batch, label):
    batch = tf.cast(batch, tf.float32)
    return (batch - 127.5) / 127.5, label


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(64).map(standardise)

inputs = tf.keras.Input((32, 32, 3))
x = tf.keras.layers.Conv2D(32, 3, activation="relu")(inputs)
x = tf.keras.layers.Conv2D(48, 3, activation="relu")(x)
x = tf.keras.layers.GlobalMaxPooling2D()(x)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(10)(x))
model.compile(optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=4, verbose=2)
