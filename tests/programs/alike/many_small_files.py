"""Four hundred image files, one read each; the step waits for their decoding, and reading them is a small part of it."""

import os
import tempfile

import numpy as np
import tensorflow as tf

FILES, SIDE, BATCH = 400, 256, 16


def write_images(folder):
    rng = np.random.default_rng(50)
    for number in range(FILES):
        coarse = rng.integers(0, 255, (32, 32, 3)).astype(np.uint8)
        picture = np.kron(coarse, np.ones((SIDE // 32, SIDE // 32, 1), np.uint8))
        with open(os.path.join(folder, f"{number:05d}.jpg"), "wb") as file:
            file.write(tf.io.encode_jpeg(picture).numpy())


def read(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (48, 48), method="area") / 255.0


with tempfile.TemporaryDirectory() as folder:
    write_images(folder)
    paths = sorted(tf.io.gfile.glob(os.path.join(folder, "*.jpg")))
    dataset = tf.data.Dataset.from_tensor_slices(paths)
    dataset = dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    dataset = dataset.map(lambda images: (images, tf.reduce_mean(images, axis=[1, 2])))

    tf.keras.utils.set_random_seed(50)
    model = tf.keras.Sequential([tf.keras.Input((48, 48, 3)), tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(3)])
    model.compile(optimizer="adam", loss="mse")
    model.fit(dataset, epochs=3, verbose=2)
