"""Calls the profiler of TensorFlow 1, which the current releases no longer have."""

import tensorflow as tf

weights = tf.Variable(tf.random.normal((64, 64)))
profiler = tf.profiler.Profiler(tf.compat.v1.get_default_graph())  # fault: gone-api


@tf.function
def step(x):
    weights.assign(tf.tanh(weights @ x))
    return tf.reduce_sum(weights)


for number in range(50):
    step(tf.ones((64, 64)))
profiler.profile_operations(options={})
