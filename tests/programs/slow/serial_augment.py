"""Photographs are decoded and augmented at random in one map without parallel calls, which TensorFlow keeps serial."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

COUNT, SIDE, CROP, BATCH = 192, 384, 64, 12


def photographs():
    """JPEG bytes of noisy colour patches: noise is what makes a JPEG slow to decode."""
    rng = np.random.default_rng(0)
    encoded = []
    for _ in range(COUNT):
        patches = np.kron(rng.integers(0, 200, (8, 8, 3)), np.ones((SIDE // 8, SIDE // 8, 1)))
        noisy = (patches + rng.integers(0, 55, patches.shape)).astype(np.uint8)
        encoded.append(tf.io.encode_jpeg(noisy, quality=90).numpy())
    return encoded, rng.integers(0, 5, COUNT)


def load(content, label):
    image = tf.io.decode_jpeg(content, channels=3)
    image = tf.image.random_crop(image, (CROP, CROP, 3))
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(tf.image.convert_image_dtype(image, tf.float32), 0.2)
    return image, label


dataset = tf.data.Dataset.from_tensor_slices(photographs()).shuffle(COUNT, seed=1)
dataset = dataset.map(load)  # fault: serial-stateful-map
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
model.fit(dataset, epochs=5, verbose=2)
