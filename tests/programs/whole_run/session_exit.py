"""A session of TensorFlow 1 whose process waits at its end for what was registered with `atexit`."""

import atexit
import time

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
rows = np.random.default_rng(1).normal(size=(32, 256)).astype("float32")


def pack():
    began = time.perf_counter()
    while time.perf_counter() - began < 3.0:
        sorted(str(cell) for cell in rows[0])  # fault: late-exit
    print(f"planted {time.perf_counter() - began:.3f}")


atexit.register(pack)
inputs = tf1.placeholder(tf.float32, (None, 256))
weights = tf1.get_variable("weights", (256, 256))
loss = tf.reduce_mean(tf.matmul(inputs, weights) ** 2)
train = tf1.train.GradientDescentOptimizer(1e-3).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(400):
        session.run(train, {inputs: rows})
