"""A loop inside of the graph, which is traced once for all of its rounds."""

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(640, 8)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).batch(16).prefetch(2)
weights = tf.Variable(tf.random.normal((8, 8)) * 0.1)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        for _ in tf.range(200):
            batch = tf.tanh(tf.matmul(batch, weights))
        loss = tf.reduce_mean(batch**2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for _ in range(4):
    for batch in train:
        train_step(batch)
