"""A hand-written recurrent cell is stepped through time by tf.range, so that the graph holds one step."""

import numpy as np
import tensorflow as tf

TIME, BATCH, UNITS = 200, 16, 32


class Recurrent(tf.Module):
    def __init__(self, inputs):
        super().__init__()
        tf.random.set_seed(1)
        self.into = tf.Variable(tf.random.normal((inputs, 2 * UNITS), stddev=0.1))
        self.back = tf.Variable(tf.random.normal((UNITS, 2 * UNITS), stddev=0.1))
        self.out = tf.Variable(tf.random.normal((UNITS, 1), stddev=0.1))

    def cell(self, x, state):
        update, candidate = tf.split(x @ self.into + state @ self.back, 2, axis=1)
        gate = tf.sigmoid(update)
        return gate * state + (1.0 - gate) * tf.tanh(candidate)

    def __call__(self, sequence):
        state = tf.zeros((BATCH, UNITS))
        for t in tf.range(TIME):
            state = self.cell(sequence[:, t], state)
        return state @ self.out


network = Recurrent(8)


@tf.function
def train_step(sequence, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(network(sequence) - target))
    for variable, gradient in zip(network.trainable_variables, tape.gradient(loss, network.trainable_variables)):
        variable.assign_sub(0.05 * gradient)
    return loss


rng = np.random.default_rng(1)
for step in range(50):
    sequence = tf.constant(rng.standard_normal((BATCH, TIME, 8)), tf.float32)
    loss = train_step(sequence, tf.reduce_mean(sequence, axis=(1, 2))[:, None])
    if step % 10 == 0:
        print("step", step, "loss", float(loss))
