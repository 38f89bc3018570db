"""Builds and saves a model, and never takes a step."""

import os
import tempfile

import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.summary()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    print("saved", os.path.getsize(path) > 0)
