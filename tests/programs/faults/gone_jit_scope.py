"""Asks for XLA through a scope that the current releases no longer have, after some steps without it."""

import tensorflow as tf

weights = tf.Variable(tf.random.normal((64, 64)))


@tf.function
def step(x):
    weights.assign(tf.tanh(weights @ x))
    return tf.reduce_sum(weights)


for number in range(30):
    step(tf.ones((64, 64)))
with tf.xla.experimental.jit_scope():  # fault: gone-api
    step(tf.ones((64, 64)))
