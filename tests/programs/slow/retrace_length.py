"""Sentences of every length go through a traced step; each new length makes TensorFlow trace it again."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)


def make_batches(count):
    """Each batch is padded to its own longest sentence, so that its width keeps changing."""
    batches = []
    lengths = rng.permutation(np.arange(20, 20 + count))
    for length in lengths:
        tokens = rng.integers(1, 2000, (16, length)).astype("int32")
        batches.append((tokens, rng.integers(0, 2, 16).astype("float32")))
    return batches


tf.keras.utils.set_random_seed(3)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(2000, 32),
        tf.keras.layers.Conv1D(32, 5, padding="same", activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam()


@tf.function
def step(tokens, labels):
    with tf.GradientTape() as tape:
        logits = model(tokens, training=True)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for number, (tokens, labels) in enumerate(make_batches(44)):
    loss = step(tf.constant(tokens), tf.constant(labels))  # fault: retracing
    if number % 20 == 0:
        print(number, float(loss))
