"""A healthy `fit` of tf_keras over a dataset."""

import numpy as np
import tensorflow as tf
import tf_keras

x = np.random.default_rng(1).normal(size=(6400, 256)).astype("float32")
train = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(500).batch(128).prefetch(2)
model = tf_keras.Sequential([tf_keras.layers.Dense(1024, activation="relu") for _ in range(2)])
model.add(tf_keras.layers.Dense(1))
model.compile("sgd", "mse")
model.fit(train, epochs=6, verbose=0)
