"""The same random augmentation, which the step waits for, but with parallel calls: nothing keeps it serial."""

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


def load(content, label):
    image = tf.io.decode_jpeg(content, channels=3)
    image = tf.image.resize(image, (2 * SIDE, 2 * SIDE), method="bicubic") / 255.0
    image = tf.image.random_crop(image, (CROP, CROP, 3))
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.2), label


dataset = tf.data.Dataset.from_tensor_slices(photographs()).shuffle(COUNT, seed=1).repeat(6)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Conv2D(8, 3, strides=4, activation="relu"), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(5)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=2)
