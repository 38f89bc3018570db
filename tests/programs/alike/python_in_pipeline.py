"""from_generator, but it yields row numbers only: what the step waits for is the decoding after it, in TensorFlow ops."""

import numpy as np
import tensorflow as tf

COUNT, SIDE, BATCH = 480, 192, 8

rng = np.random.default_rng(42)
contents = tf.constant(
    [tf.io.encode_jpeg(np.kron(rng.integers(0, 255, (12, 12, 3)), np.ones((16, 16, 1))).astype(np.uint8)).numpy() for _ in range(COUNT)]
)
labels = tf.constant(rng.integers(0, 4, COUNT))


def rows():
    order = np.random.default_rng(0)
    yield from order.permutation(COUNT)


def load(row):
    image = tf.io.decode_jpeg(contents[row], channels=3)
    return tf.image.resize(image, (64, 64), method="bicubic", antialias=True) / 255.0, labels[row]


dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [tf.keras.Input((64, 64, 3)), tf.keras.layers.Conv2D(8, 4, strides=4), tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(4)]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=2, verbose=2)
