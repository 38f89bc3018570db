"""A small set of JPEGs, held in one record file, is decoded and shrunk anew in every epoch."""

import os
import tempfile

import numpy as np
import tensorflow as tf
import keras

IMAGES, SIDE, BATCH, EPOCHS = 320, 256, 32, 8


def write_records(path):
    rng = np.random.default_rng(5)
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(IMAGES):
            coarse = rng.integers(0, 255, (16, 16, 3)).astype(np.uint8)
            picture = np.kron(coarse, np.ones((SIDE // 16, SIDE // 16, 1), np.uint8))
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_jpeg(picture).numpy()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 3])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    parsed = tf.io.parse_single_example(
        record, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    image = tf.io.decode_jpeg(parsed["image"], channels=3)
    image = tf.image.resize(image, (48, 48), method="area") / 255.0
    return image, parsed["label"]


def load(path):
    dataset = tf.data.TFRecordDataset(path)
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)  # fault: uncached-prefix
    return dataset.shuffle(IMAGES, seed=0).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def main():
    keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.tfrecord")
        write_records(path)
        model = keras.Sequential(
            [
                keras.Input((48, 48, 3)),
                keras.layers.Conv2D(12, 3, strides=2, activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(3),
            ]
        )
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        model.fit(load(path), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
