"""A contrastive loss is summed sample by sample in a loop inside the traced step."""

import numpy as np
import tensorflow as tf

BATCH = 128
tf.keras.utils.set_random_seed(2)
encoder = tf.keras.Sequential([tf.keras.Input((100,)), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(32)])
optimizer = tf.keras.optimizers.Adam(1e-3)


def contrastive(first, second):
    total = 0.0
    for i in tf.range(BATCH):  # fault: per-sample-loop
        scores = tf.linalg.matvec(second, first[i]) / 0.5
        total += tf.reduce_logsumexp(scores) - scores[i]
    return total / BATCH


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
