"""A contrastive loss is computed for the whole batch at once."""

import numpy as np
import tensorflow as tf

BATCH = 128
tf.keras.utils.set_random_seed(2)
encoder = tf.keras.Sequential([tf.keras.Input((100,)), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(32)])
optimizer = tf.keras.optimizers.Adam(1e-3)


def contrastive(first, second):
    scores = tf.matmul(first, second, transpose_b=True) / 0.5
    return tf.reduce_mean(tf.reduce_logsumexp(scores, axis=1) - tf.linalg.diag_part(scores))


@tf.function
def train_step(view_a, view_b):
    with tf.GradientTape() as tape:
        a = tf.math.l2_normalize(encoder(view_a, training=True), axis=1)
        b = tf.math.l2_normalize(encoder(view_b, training=True), axis=1)
        loss = contrastive(a, b)
    gradients = tape.gradient(loss, encoder.trainable_variables)
    optimizer.apply_gradients(zip(gradients, encoder.trainable_variables))
    return loss


rng = np.random.default_rng(2)
clean = rng.standard_normal((BATCH * 50, 100)).astype("float32")
noisy = clean + 0.1 * rng.standard_normal(clean.shape).astype("float32")
pairs = tf.data.Dataset.from_tensor_slices((clean, noisy)).batch(BATCH, drop_remainder=True).prefetch(2)
for epoch in range(6):
    for view_a, view_b in pairs:
        loss = train_step(view_a, view_b)
    print("epoch", epoch, "loss", float(loss))
