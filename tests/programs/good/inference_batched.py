"""Inference in batches of 64 through a function traced once."""

import argparse

import numpy as np
import tensorflow as tf


def build_model():
    return tf.keras.Sequential(
        [
            tf.keras.Input((64, 64, 3)),
            tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            tf.keras.layers.Conv2D(64, 3, activation="relu"),
            tf.keras.layers.Conv2D(64, 3, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(5),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=60)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(5)
    model = build_model()

    @tf.function(input_signature=[tf.TensorSpec((None, 64, 64, 3), tf.float32)])
    def classify(images):
        return tf.argmax(model(images, training=False), axis=1)

    images = np.random.default_rng(5).random((512, 64, 64, 3), dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(64).cache().repeat().take(args.batches).prefetch(tf.data.AUTOTUNE)
    answers = [classify(batch) for batch in dataset]
    print(np.bincount(np.concatenate([a.numpy() for a in answers]), minlength=5))


if __name__ == "__main__":
    main()
