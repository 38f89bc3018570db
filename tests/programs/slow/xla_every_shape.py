"""jit_compile, and sequences of any length: one trace serves them all, but XLA compiles for each length anew."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(73)
rng = np.random.default_rng(73)
lengths = rng.permutation(np.arange(16, 496, 8))[:45]
weights = tf.Variable(rng.normal(0, 0.1, (64, 64)).astype("float32"))


@tf.function(jit_compile=True, reduce_retracing=True)
def train_step(sequence):
    with tf.GradientTape() as tape:
        hidden = sequence
        for _ in range(4):
            hidden = tf.tanh(tf.matmul(hidden, weights))
        loss = tf.reduce_sum(hidden**2) / tf.cast(tf.shape(sequence)[0], tf.float32)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for length in lengths:
    sequence = tf.constant(rng.normal(size=(length, 64)).astype("float32"))
    loss = train_step(sequence)  # fault: retracing
print("loss", float(loss))
