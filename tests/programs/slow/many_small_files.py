"""Four thousand feature vectors, one file each, are opened and read anew in every epoch."""

import os
import tempfile

import numpy as np
import tensorflow as tf

FILES, WIDTH, BATCH, EPOCHS = 4000, 64, 128, 5


def write_samples(folder):
    rng = np.random.default_rng(50)
    vectors = rng.standard_normal((FILES, WIDTH)).astype("<f4")
    for number, vector in enumerate(vectors):
        shelf = os.path.join(folder, f"{number % 50:02d}")
        os.makedirs(shelf, exist_ok=True)
        vector.tofile(os.path.join(shelf, f"{number:05d}.bin"))


def read(path):
    vector = tf.io.decode_raw(tf.io.read_file(path), tf.float32)
    return tf.ensure_shape(vector, (WIDTH,))


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_samples(folder)
        paths = sorted(tf.io.gfile.glob(os.path.join(folder, "*", "*.bin")))
        dataset = tf.data.Dataset.from_tensor_slices(paths)
        dataset = dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE)  # fault: many-small-files
        dataset = dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
        dataset = dataset.map(lambda vectors: (vectors, vectors))

        tf.keras.utils.set_random_seed(50)
        autoencoder = tf.keras.Sequential([tf.keras.Input((WIDTH,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(WIDTH)])
        autoencoder.compile(optimizer="adam", loss="mse")
        autoencoder.fit(dataset, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
