"""Layers ported from a channels-first framework, turned around once, where the data comes in."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


class PortedConv(keras.layers.Layer):
    """Takes and gives channels last."""

    def __init__(self, filters):
        super().__init__()
        self.filters = filters

    def build(self, shape):
        self.kernel = self.add_weight(shape=(1, 1, shape[3], self.filters), initializer="glorot_uniform")

    def call(self, x):
        x = tf.nn.conv2d(x, self.kernel, strides=1, padding="SAME")
        return tf.nn.relu(x)


keras.utils.set_random_seed(33)
network = keras.Sequential([keras.Input((64, 64, 32))] + [PortedConv(32) for _ in range(5)])
readout = keras.layers.Dense(4)
readout.build((None, 32))
variables = network.trainable_variables + readout.trainable_variables
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        pooled = tf.reduce_mean(network(images, training=True), axis=[1, 2])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, readout(pooled)))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


rng = np.random.default_rng(33)
images = rng.random((64, 32, 64, 64), dtype="float32").transpose(0, 2, 3, 1)
labels = rng.integers(0, 4, 64)
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8).cache().repeat(12).prefetch(2)
for step, (x, y) in enumerate(dataset):
    loss = train_step(x, y)
    if step % 25 == 0:
        print("step", step, "loss", float(loss))
