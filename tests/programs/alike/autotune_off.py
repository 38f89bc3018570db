"""Tuning is off on purpose: parallel calls and the prefetch are set by hand, and no step waits for its input."""

import numpy as np
import tensorflow as tf

BATCH, WIDTH = 256, 512

generator = np.random.default_rng(1)
features = tf.constant(generator.standard_normal((BATCH * 30, WIDTH), dtype=np.float32))
labels = tf.constant(generator.integers(0, 2, BATCH * 30).astype("float32"))


def read(rows):
    return tf.gather(features, rows), tf.gather(labels, rows)


dataset = tf.data.Dataset.range(BATCH * 30).batch(BATCH).map(read, num_parallel_calls=2).prefetch(4)
options = tf.data.Options()
options.autotune.enabled = False
dataset = dataset.with_options(options)

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential(
    [
        tf.keras.Input((WIDTH,)),
        tf.keras.layers.Dense(1024, activation="relu"),
        tf.keras.layers.Dense(1024, activation="relu"),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=4, verbose=2)
