"""Batches come from a slow disk; somebody switched tf.data's tuning off while looking for a memory leak.

With the tuning goes the prefetch that TensorFlow would put at the end by itself.
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Sequential, layers, utils

BATCH, WIDTH = 128, 512


def from_slow_disk(rows):
    """Stands for a disk that takes some milliseconds to answer: the wait uses no processor and runs no Python."""
    held = tf.data.Dataset.from_tensors(rows)
    waiting = tf.raw_ops.SleepDataset(
        input_dataset=tf.data.experimental.to_variant(held),
        sleep_microseconds=8_000,
        output_types=[tf.int64],
        output_shapes=[[None]],
    )
    return tf.data.experimental.from_variant(waiting, held.element_spec).get_single_element()


def input_pipeline(features, labels):
    features, labels = tf.constant(features), tf.constant(labels)

    def read(rows):
        rows = from_slow_disk(rows)
        return tf.gather(features, rows), tf.gather(labels, rows)

    dataset = tf.data.Dataset.range(len(features)).batch(BATCH).map(read)
    options = tf.data.Options()
    options.autotune.enabled = False  # fault: autotune-off
    return dataset.with_options(options)


if __name__ == "__main__":
    utils.set_random_seed(1)
    generator = np.random.default_rng(1)
    features = generator.standard_normal((BATCH * 40, WIDTH), dtype=np.float32)
    labels = generator.integers(0, 2, BATCH * 40).astype("float32")
    model = Sequential(
        [
            layers.Input((WIDTH,)),
            layers.Dense(768, activation="relu"),
            layers.Dense(768, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="sgd", loss="binary_crossentropy")
    model.fit(input_pipeline(features, labels), epochs=6, verbose=2)
