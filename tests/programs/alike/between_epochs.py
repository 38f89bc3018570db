"""One iterator over all epochs: its buffer is filled once, and no epoch waits for it."""

import numpy as np
import tensorflow as tf
import tf_keras

x = np.random.default_rng(1).normal(size=(2000, 256)).astype("float32")
train = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(2000).repeat().batch(20).prefetch(2)
model = tf_keras.Sequential([tf_keras.layers.Dense(512, activation="relu"), tf_keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(train, epochs=4, steps_per_epoch=100, verbose=0)
