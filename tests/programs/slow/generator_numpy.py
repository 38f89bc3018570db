"""Sensor windows are cleaned in numpy inside a generator and classified by a small convolutional network."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

WINDOWS, LENGTH, CHANNELS, BATCH = 1024, 128, 6, 32


class Recordings:
    """Raw windows with their labels; cleaning happens when a window is asked for."""

    def __init__(self):
        rng = np.random.default_rng(42)
        self.raw = rng.standard_normal((WINDOWS, LENGTH, CHANNELS)).astype("float32")
        self.labels = rng.integers(0, 4, WINDOWS).astype("int32")

    def clean(self, window):
        centred = window - window.mean(axis=0)
        scaled = centred / (centred.std(axis=0) + 1e-6)
        kernel = np.ones(9, "float32") / 9
        smooth = np.stack([np.convolve(scaled[:, c], kernel, mode="same") for c in range(CHANNELS)], axis=1)
        spectrum = np.abs(np.fft.rfft(smooth, n=2 * LENGTH, axis=0))[:LENGTH]
        return np.concatenate([smooth, np.log1p(spectrum)], axis=1).astype("float32")

    def __call__(self):
        for window, label in zip(self.raw, self.labels):
            yield self.clean(window), label


def main():
    keras.utils.set_random_seed(0)
    dataset = tf.data.Dataset.from_generator(  # fault: python-in-pipeline
        Recordings(),
        output_signature=(
            tf.TensorSpec((LENGTH, 2 * CHANNELS), tf.float32),
            tf.TensorSpec((), tf.int32),
        ),
    )
    dataset = dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input((LENGTH, 2 * CHANNELS)),
            keras.layers.Conv1D(16, 5, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(4),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset, epochs=8, verbose=2)


if __name__ == "__main__":
    main()
