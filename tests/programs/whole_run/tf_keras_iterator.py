"""A dataset that sorts its index again whenever an epoch of tf_keras begins."""

import time

import numpy as np
import tensorflow as tf
import tf_keras

PLANTED = [0.0]
x = np.random.default_rng(1).normal(size=(60, 20, 32)).astype("float32")


def read():
    began = time.perf_counter()
    while time.perf_counter() - began < 1.0:
        order = sorted(range(len(x)), key=str)
    PLANTED[0] += time.perf_counter() - began
    for number in order:
        yield x[number], x[number, :, :1]


kinds = (tf.TensorSpec((20, 32), tf.float32), tf.TensorSpec((20, 1), tf.float32))
train = tf.data.Dataset.from_generator(read, output_signature=kinds).prefetch(2)
model = tf_keras.Sequential([tf_keras.layers.Dense(64, activation="relu"), tf_keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(train, epochs=4, verbose=0)  # fault: between-epochs
print(f"planted {PLANTED[0]:.3f}")
