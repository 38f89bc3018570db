"""A Python loop in the traced step with 24 turns, one for each layer: every turn has weights of its own to apply."""

import numpy as np
import tensorflow as tf

DEPTH, BATCH, UNITS = 24, 64, 256


class Residual(tf.Module):
    def __init__(self):
        super().__init__()
        tf.random.set_seed(1)
        self.layers = [tf.Variable(tf.random.normal((UNITS, UNITS), stddev=0.02)) for _ in range(DEPTH)]
        self.out = tf.Variable(tf.random.normal((UNITS, 1), stddev=0.1))

    def __call__(self, x):
        for weights in self.layers:
            x = x + tf.nn.relu(x @ weights)
        return x @ self.out


network = Residual()


@tf.function
def train_step(x, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(network(x) - target))
    for variable, gradient in zip(network.trainable_variables, tape.gradient(loss, network.trainable_variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


rng = np.random.default_rng(1)
x = tf.constant(rng.standard_normal((BATCH, UNITS)), tf.float32)
target = tf.reduce_mean(x, axis=1, keepdims=True)
for step in range(150):
    loss = train_step(x, target)
    if step % 50 == 0:
        print("step", step, "loss", float(loss))
