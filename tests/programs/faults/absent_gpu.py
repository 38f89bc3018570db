"""Asks for a GPU inside the traced step, whether the machine has one or not."""

import tensorflow as tf

tf.random.set_seed(0)
weights = tf.Variable(tf.random.normal((512, 512), stddev=0.04))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        with tf.device("/GPU:0"):
            hidden = tf.tanh(x @ weights)  # fault: cpu-fallback
            loss = tf.reduce_mean(tf.square(hidden - x))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


x = tf.random.normal((256, 512))
for number in range(80):
    loss = train_step(x)
print("loss", float(loss))
