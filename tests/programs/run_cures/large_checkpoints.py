"""A model of ten million weights is saved after each short epoch, and training waits for the disk."""

import os
import tempfile

import keras
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.default_rng(1).normal(size=(640, 512)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(2048, activation="relu") for _ in range(3)] + [keras.layers.Dense(1)])
model.compile("adam", "mse")
with tempfile.TemporaryDirectory() as directory:
    keeper = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model.keras"))
    model.fit(x, y, batch_size=64, epochs=12, verbose=2, shuffle=False, callbacks=[keeper])
