"""Data that are read as an array at the start: what is left before the first step is the import of TensorFlow."""

import os
import tempfile

import keras
import numpy as np

with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "rows.npy")
    np.save(path, np.random.default_rng(1).normal(size=(3200, 256)).astype("float32"))
    x = np.load(path)
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=64, epochs=6, verbose=0)
