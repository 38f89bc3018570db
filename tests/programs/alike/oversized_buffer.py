"""A shuffle buffer as large as the set, but of row numbers: it is full at once, and the images are made after it."""

import numpy as np
import tensorflow as tf

COUNT, SIDE, BATCH = 6000, 32, 24

rng = np.random.default_rng(60)
images = tf.constant(rng.integers(0, 255, (COUNT, SIDE, SIDE, 3), dtype=np.uint8))
labels = tf.constant(rng.integers(0, 4, COUNT))


def load(rows):
    return tf.cast(tf.gather(images, rows), tf.float32) / 255.0, tf.gather(labels, rows)


dataset = tf.data.Dataset.range(COUNT).repeat().shuffle(COUNT, seed=3)
dataset = dataset.batch(BATCH).map(load, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

tf.keras.utils.set_random_seed(60)
model = tf.keras.Sequential(
    [
        tf.keras.Input((SIDE, SIDE, 3)),
        tf.keras.layers.Conv2D(24, 3, activation="relu"),
        tf.keras.layers.Conv2D(24, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
model.fit(dataset, steps_per_epoch=60, epochs=2, verbose=2)
