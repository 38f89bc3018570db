"""A training step that XLA compiles for longer than all of its steps take."""

import time

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
x = rng.normal(size=(640, 16)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).batch(16).prefetch(2)
weights = [tf.Variable(rng.normal(size=(16, 16)).astype("float32") / 4) for _ in range(120)]


@tf.function(jit_compile=True)  # fault: compile-bound
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(chained(batch) ** 2)
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        variable.assign_sub(0.1 * gradient)
    return loss


def chained(batch):
    for variable in weights:
        batch = tf.nn.softmax(tf.matmul(batch, variable)) + tf.tanh(batch)
    return batch


began = time.perf_counter()
train_step(tf.constant(x[:16]))
print(f"planted {time.perf_counter() - began:.3f}")
for _ in range(2):
    for batch in train:
        train_step(batch)
