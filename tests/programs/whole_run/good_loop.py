"""A healthy loop: one traced step, validation in a traced function, one checkpoint at the end."""

import os
import tempfile

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(6400, 512)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).shuffle(1000).batch(128).prefetch(2)
check = tf.data.Dataset.from_tensor_slices(x[:640]).batch(640).cache()
weights = tf.Variable(tf.random.normal((512, 1024)) * 0.02)
back = tf.Variable(tf.random.normal((1024, 512)) * 0.02)


def loss_of(batch):
    return tf.reduce_mean((tf.matmul(tf.nn.relu(tf.matmul(batch, weights)), back) - batch) ** 2)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = loss_of(batch)
    for variable, gradient in zip((weights, back), tape.gradient(loss, (weights, back)), strict=True):
        variable.assign_sub(0.1 * gradient)
    return loss


evaluate = tf.function(loss_of)
for _ in range(8):
    for batch in train:
        train_step(batch)
    for batch in check:
        evaluate(batch)
with tempfile.TemporaryDirectory() as directory:
    tf.train.Checkpoint(weights=weights, back=back).write(os.path.join(directory, "model"))
