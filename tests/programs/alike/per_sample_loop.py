"""A tf.range loop with as many turns as the batch has samples, but over time: each turn takes the whole batch."""

import numpy as np
import tensorflow as tf

TIME, BATCH, UNITS = 16, 16, 128


class Recurrent(tf.Module):
    def __init__(self, inputs):
        super().__init__()
        self.into = tf.Variable(tf.random.normal((inputs, UNITS), stddev=0.1))
        self.back = tf.Variable(tf.random.normal((UNITS, UNITS), stddev=0.1))
        self.out = tf.Variable(tf.random.normal((UNITS, 1), stddev=0.1))

    def __call__(self, sequence):
        state = tf.zeros((BATCH, UNITS))
        for t in tf.range(TIME):
            state = tf.tanh(sequence[:, t] @ self.into + state @ self.back)
        return state @ self.out


tf.random.set_seed(2)
network = Recurrent(8)


@tf.function
def train_step(sequence, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(network(sequence) - target))
    for variable, gradient in zip(network.trainable_variables, tape.gradient(loss, network.trainable_variables)):
        variable.assign_sub(0.05 * gradient)
    return loss


rng = np.random.default_rng(2)
sequences = rng.standard_normal((BATCH * 40, TIME, 8)).astype("float32")
targets = sequences.mean(axis=(1, 2))[:, None]
dataset = tf.data.Dataset.from_tensor_slices((sequences, targets)).batch(BATCH).prefetch(2)
for epoch in range(5):
    for sequence, target in dataset:
        loss = train_step(sequence, target)
    print("epoch", epoch, "loss", float(loss))
