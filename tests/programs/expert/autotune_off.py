"""JPEGs are decoded and shrunk in a map."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Sequential, layers, utils

BATCH = 12


def encode_some(count):
    generator = np.random.default_rng(1)
    pictures = []
    for _ in range(count):
        base = np.kron(generator.integers(0, 190, (6, 6, 3)), np.ones((60, 60, 1)))
        pictures.append(tf.io.encode_jpeg((base + generator.integers(0, 60, base.shape)).astype(np.uint8), quality=92).numpy())
    return pictures, generator.integers(0, 2, count).astype("float32")


def decode(content, label):
    image = tf.io.decode_jpeg(content, channels=3)
    small = tf.image.resize(image, (64, 64), method="bicubic")
    return small / 255.0, label


def input_pipeline(pictures, labels):
    dataset = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(len(pictures), seed=4)
    dataset = dataset.map(decode)
    return dataset.batch(BATCH)


if __name__ == "__main__":
    utils.set_random_seed(1)
    model = Sequential(
        [
            layers.Input((64, 64, 3)),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(input_pipeline(*encode_some(120)), epochs=14, verbose=2)
