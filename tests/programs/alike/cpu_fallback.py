"""Asks for a GPU only where there is one, and keeps the embedding on the CPU by name."""

import tensorflow as tf

DEVICE = "/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"
tf.random.set_seed(0)
with tf.device("/CPU:0"):
    table = tf.Variable(tf.random.normal((5000, 512), stddev=0.04))
weights = tf.Variable(tf.random.normal((512, 512), stddev=0.04))


@tf.function
def train_step(rows):
    with tf.GradientTape() as tape:
        with tf.device("/CPU:0"):
            x = tf.gather(table, rows)
        with tf.device(DEVICE):
            hidden = tf.tanh(x @ weights)
            loss = tf.reduce_mean(tf.square(hidden - x))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


rows = tf.random.uniform((256,), 0, 5000, tf.int32)
for number in range(80):
    loss = train_step(rows)
print("loss", float(loss))
