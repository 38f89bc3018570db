"""Four thousand feature vectors are packed into two record files, read a batch at a time."""

import os
import tempfile

import numpy as np
import tensorflow as tf

FILES, WIDTH, BATCH, EPOCHS = 4000, 64, 128, 5


def write_samples(folder):
    rng = np.random.default_rng(50)
    vectors = rng.standard_normal((FILES, WIDTH)).astype("<f4")
    order = sorted(range(FILES), key=lambda number: (number % 50, number))
    paths = [os.path.join(folder, f"train.tfrecord-{shard:05d}-of-00002") for shard in range(2)]
    for path, numbers in zip(paths, (order[: FILES // 2], order[FILES // 2 :])):
        with tf.io.TFRecordWriter(path) as writer:
            for number in numbers:
                writer.write(vectors[number].tobytes())
    return paths


def main():
    with tempfile.TemporaryDirectory() as folder:
        dataset = tf.data.TFRecordDataset(write_samples(folder))
        dataset = dataset.batch(BATCH, drop_remainder=True)
        dataset = dataset.map(lambda records: tf.ensure_shape(tf.io.decode_raw(records, tf.float32), (BATCH, WIDTH)))
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        dataset = dataset.map(lambda vectors: (vectors, vectors))

        tf.keras.utils.set_random_seed(50)
        autoencoder = tf.keras.Sequential([tf.keras.Input((WIDTH,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(WIDTH)])
        autoencoder.compile(optimizer="adam", loss="mse")
        autoencoder.fit(dataset, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
