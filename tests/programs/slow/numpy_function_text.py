"""Short reviews are split and looked up in a vocabulary in plain Python, called through tf.numpy_function."""

import argparse
import random

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

LENGTH = 64


def make_reviews(count, seed):
    source = random.Random(seed)
    words = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("la", "mi", "ran", "tos", "ver", "zin")]
    reviews = [" ".join(source.choice(words) for _ in range(source.randint(30, 90))) for _ in range(count)]
    labels = [sum(word[0] in "bd" for word in review.split()) % 2 for review in reviews]
    return words, reviews, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    words, reviews, labels = make_reviews(1600, seed=3)
    numbers = {word: position + 2 for position, word in enumerate(words)}

    def encode(text):
        ids = []
        for word in text.decode("utf-8").lower().split(" "):
            cleaned = "".join(ch for ch in word if ch.isalpha())
            ids.append(numbers.get(cleaned, 1))
        ids = ids[:LENGTH] + [0] * (LENGTH - len(ids))
        return np.array(ids, dtype=np.int64)

    def to_ids(text, label):
        ids = tf.numpy_function(encode, [text], tf.int64)
        ids.set_shape([LENGTH])
        return ids, label

    dataset = (
        tf.data.Dataset.from_tensor_slices((reviews, labels))
        .map(to_ids)  # fault: python-in-pipeline
        .batch(args.batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            layers.Input((LENGTH,), dtype="int64"),
            layers.Embedding(len(words) + 2, 16),
            layers.GlobalAveragePooling1D(),
            layers.Dense(16, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(dataset, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
