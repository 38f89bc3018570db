"""Short reviews are split and looked up in a vocabulary by TensorFlow itself, a batch at a time."""

import argparse
import random

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
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(words), tf.range(2, len(words) + 2, dtype=tf.int64)),
        default_value=1,
    )

    def to_ids(texts, labels):
        cleaned = tf.strings.regex_replace(tf.strings.lower(texts), "[^a-z ]", "")
        ids = tf.ragged.map_flat_values(table.lookup, tf.strings.split(cleaned, " "))
        return ids.to_tensor(shape=(None, LENGTH)), labels

    dataset = (
        tf.data.Dataset.from_tensor_slices((reviews, labels))
        .batch(args.batch_size)
        .map(to_ids, num_parallel_calls=tf.data.AUTOTUNE)
        .cache()
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
