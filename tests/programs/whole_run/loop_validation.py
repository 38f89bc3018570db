"""A loop that validates eagerly, sample by sample, after each epoch."""

import time

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(3200, 64)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).shuffle(1000).batch(32).prefetch(2)
check = tf.data.Dataset.from_tensor_slices(x[:400]).batch(1).prefetch(2)
first = tf.Variable(tf.random.normal((64, 64)) * 0.1)
second = tf.Variable(tf.random.normal((64, 64)) * 0.1)


def loss_of(batch):
    return tf.reduce_mean((tf.matmul(tf.nn.relu(tf.matmul(batch, first)), second) - batch) ** 2)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = loss_of(batch)
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.1 * gradient)
    return loss


planted = 0.0
for _ in range(4):
    for batch in train:
        train_step(batch)
    began = time.perf_counter()
    total = 0.0
    for batch in check:  # fault: validation-bound
        total += float(loss_of(batch))
    planted += time.perf_counter() - began
print(f"planted {planted:.3f}")
