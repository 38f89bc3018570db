"""Trains on numbers that come in on standard input."""

import sys

import numpy as np
import tensorflow as tf

numbers = [float(line) for line in sys.stdin if line.strip()]
print("read", len(numbers), "numbers", flush=True)
if numbers:
    x = np.resize(np.array(numbers, "float32"), (512, 4))
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x / (np.abs(x).max() + 1), np.zeros((512, 1), "float32"), batch_size=8, verbose=0)
