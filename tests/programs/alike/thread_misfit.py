"""Sets the number of threads, too, but to the cores that the process may use."""

import os

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(len(os.sched_getaffinity(0)))
tf.random.set_seed(0)
first = tf.Variable(tf.random.normal((768, 768), stddev=0.03))
second = tf.Variable(tf.random.normal((768, 768), stddev=0.03))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ first) @ second - x))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second))):
        variable.assign_sub(0.1 * gradient)
    return loss


x = tf.random.normal((512, 768))
for number in range(80):
    loss = train_step(x)
print("loss", float(loss))
