"""A large distance table stays a numpy array and is made into a tensor again at every step."""

import numpy as np
import tensorflow as tf

NODES, STEPS = 3000, 60
rng = np.random.default_rng(20)
places = rng.uniform(0, 1, (NODES, 2))
distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))

tf.keras.utils.set_random_seed(20)
embedding = tf.Variable(tf.random.normal((NODES, 8), stddev=0.1))
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def step(table, rows):
    with tf.GradientTape() as tape:
        chosen = tf.gather(embedding, rows)
        other = tf.reverse(chosen, axis=[0])
        wanted = tf.gather_nd(table, tf.stack([rows, tf.reverse(rows, axis=[0])], axis=1))
        loss = tf.reduce_mean(tf.square(tf.norm(chosen - other + 1e-6, axis=1) - wanted))
    optimizer.apply_gradients([(tape.gradient(loss, embedding), embedding)])
    return loss


for number in range(STEPS):
    rows = rng.integers(0, NODES, 512)
    loss = step(tf.constant(distances, tf.float32), tf.constant(rows, tf.int32))  # fault: tensor-reconversion
    if number % 20 == 0:
        print("step", number, "loss", float(loss))
