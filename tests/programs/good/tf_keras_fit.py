"""tf_keras fit of a convolutional network on a prefetched dataset."""

import numpy as np
import tensorflow as tf
import tf_keras as keras

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
x = rng.random((64 * 25, 28, 28, 1)).astype("float32")
y = rng.integers(0, 10, 64 * 25)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).cache().prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
        keras.layers.Conv2D(64, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(dataset, epochs=3, verbose=2)
