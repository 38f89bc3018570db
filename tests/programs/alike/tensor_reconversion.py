"""An array becomes a tensor at every step, on the same line, but each time another one: there is nothing to keep."""

import numpy as np
import tensorflow as tf

NODES, STEPS = 1200, 80
rng = np.random.default_rng(20)

tf.keras.utils.set_random_seed(20)
embedding = tf.Variable(tf.random.normal((NODES, 8), stddev=0.1))
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def step(table):
    with tf.GradientTape() as tape:
        inner = tf.matmul(embedding, embedding, transpose_b=True)
        loss = tf.reduce_mean(tf.square(inner - table))
    optimizer.apply_gradients([(tape.gradient(loss, embedding), embedding)])
    return loss


for number in range(STEPS):
    measured = rng.uniform(0, 1, (NODES, NODES))
    loss = step(tf.constant(measured, tf.float32))
    if number % 20 == 0:
        print("step", number, "loss", float(loss))
