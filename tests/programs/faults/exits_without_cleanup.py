"""Leaves with os._exit(5): no atexit handler runs and nothing is flushed for it."""

import os
import sys

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((1000, 8), "float32"), np.ones((1000, 1), "float32"), batch_size=10, verbose=0)
print("leaving")
sys.stdout.flush()
os._exit(5)
