"""Photographs are fetched, decoded and augmented at random in one map, sixteen at a time."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

COUNT, SIDE, CROP, BATCH = 160, 128, 64, 8


def photographs():
    rng = np.random.default_rng(0)
    encoded = []
    for _ in range(COUNT):
        patches = np.kron(rng.integers(0, 255, (8, 8, 3)), np.ones((SIDE // 8, SIDE // 8, 1))).astype(np.uint8)
        encoded.append(tf.io.encode_jpeg(patches).numpy())
    return encoded, rng.integers(0, 5, COUNT)


def from_slow_disk(content):
    """Stands for a disk that takes two milliseconds to answer: the wait uses no processor and runs no Python."""
    held = tf.data.Dataset.from_tensors(content)
    waiting = tf.raw_ops.SleepDataset(
        input_dataset=tf.data.experimental.to_variant(held),
        sleep_microseconds=1000,
        output_types=[tf.string],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(waiting, held.element_spec).get_single_element()


def load(content, label):
    image = tf.io.decode_jpeg(from_slow_disk(content), channels=3)
    image = tf.image.random_crop(image, (CROP, CROP, 3))
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(tf.image.convert_image_dtype(image, tf.float32), 0.2)
    return image, label


dataset = tf.data.Dataset.from_tensor_slices(photographs()).shuffle(COUNT, seed=1).repeat(8)
dataset = dataset.map(load, num_parallel_calls=16)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=2)
