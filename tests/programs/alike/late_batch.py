"""A cheap map before the batch that cannot come after it: each thumbnail is decoded from bytes of its own."""

import numpy as np
import tensorflow as tf

COUNT, SIDE, BATCH = 16_000, 8, 256

rng = np.random.default_rng(0)
originals = [tf.io.encode_png(rng.integers(0, 255, (SIDE, SIDE, 1), dtype=np.uint8)).numpy() for _ in range(100)]
contents = [originals[number] for number in rng.integers(0, 100, COUNT)]
labels = rng.integers(0, 10, COUNT)


def decode(content, label):
    image = tf.io.decode_png(content, channels=1)
    return tf.ensure_shape(image, (SIDE, SIDE, 1)), label


train = tf.data.Dataset.from_tensor_slices((contents, labels)).map(decode).batch(BATCH).prefetch(tf.data.AUTOTUNE)

tf.keras.utils.set_random_seed(2)
model = tf.keras.Sequential(
    [tf.keras.Input((SIDE, SIDE, 1)), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)]
)
model.compile(optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(train, epochs=3, verbose=2)
