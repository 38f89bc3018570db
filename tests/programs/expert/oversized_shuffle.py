"""The compressed images are shuffled, and only what a batch needs is decoded."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

COUNT, SIDE, BATCH, STEPS = 6000, 64, 24, 48


def compressed_images():
    """PNG bytes drawn from a few originals; the set is large, the originals are few."""
    rng = np.random.default_rng(60)
    originals = []
    for _ in range(40):
        coarse = rng.integers(0, 255, (16, 16, 3)).astype(np.uint8)
        originals.append(tf.io.encode_png(np.kron(coarse, np.ones((12, 12, 1), np.uint8))).numpy())
    return np.array(originals, dtype=object)[rng.integers(0, 40, COUNT)], rng.integers(0, 4, COUNT)


def decode(content, label):
    image = tf.io.decode_png(content, channels=3)
    return tf.image.resize(image, (SIDE, SIDE), method="bicubic") / 255.0, label


def main():
    contents, labels = compressed_images()
    dataset = tf.data.Dataset.from_tensor_slices((contents.astype("S"), labels)).shuffle(COUNT, seed=3).repeat()
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

    keras.utils.set_random_seed(60)
    model = keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(8, 4, strides=4, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(4, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(dataset, steps_per_epoch=STEPS, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
