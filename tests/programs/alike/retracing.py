"""Sentences are padded to one of three lengths: the step is traced once for each of them, and never again."""

import numpy as np
import tensorflow as tf

LENGTHS = (16, 32, 64)
rng = np.random.default_rng(3)

tf.keras.utils.set_random_seed(3)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(2000, 64),
        tf.keras.layers.Conv1D(64, 5, padding="same", activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.SGD()


@tf.function
def step(tokens, labels):
    with tf.GradientTape() as tape:
        logits = model(tokens, training=True)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


batches = []
for length in LENGTHS:
    tokens = tf.constant(rng.integers(1, 2000, (64, length)), tf.int32)
    batches.append((tokens, tf.constant(rng.integers(0, 2, 64), tf.float32)))
for number in range(210):
    tokens, labels = batches[number % 3]
    loss = step(tokens, labels)
    if number % 50 == 0:
        print(number, float(loss))
