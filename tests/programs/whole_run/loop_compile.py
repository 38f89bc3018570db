"""A loop of Python that is unrolled into thousands of ops while its function is traced."""

import time

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(640, 8)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).batch(16).prefetch(2)
weights = tf.Variable(tf.random.normal((8, 8)) * 0.1)


@tf.function  # fault: compile-bound
def train_step(batch):
    with tf.GradientTape() as tape:
        for _ in range(400):
            batch = tf.tanh(tf.matmul(batch, weights))
        loss = tf.reduce_mean(batch**2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


began = time.perf_counter()
train_step(tf.constant(x[:16]))
print(f"planted {time.perf_counter() - began:.3f}")
for _ in range(2):
    for batch in train:
        train_step(batch)
