"""Samples come from a remote store whose answer takes 10 ms; sixteen fetches may be under way, but no thread pool is set.

The wait is a sleep inside numpy_function: TensorFlow has no operation that blocks without Python and needs no network.
"""

import time

import numpy as np
import tensorflow as tf

BATCH = 32


class RemoteStore:
    """Stands for an object store: the answer takes a while, and waiting for it uses no processor."""

    def __init__(self, count, width):
        rng = np.random.default_rng(12)
        self.rows = rng.standard_normal((count, width)).astype(np.float32)
        self.targets = self.rows[:, :4].sum(axis=1)

    def get(self, key):
        time.sleep(0.010)
        return self.rows[key], self.targets[key]


store = RemoteStore(1600, 64)


def fetch(key):
    row, target = tf.numpy_function(store.get, [key], (tf.float32, tf.float32))
    row.set_shape([64])
    target.set_shape([])
    return row, target


dataset = tf.data.Dataset.range(1600)
dataset = dataset.map(fetch, num_parallel_calls=16)  # fault: blocking-map
dataset = dataset.batch(BATCH).prefetch(2)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(dataset, epochs=1, verbose=2)
