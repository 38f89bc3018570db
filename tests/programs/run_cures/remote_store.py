"""A checkpoint after each epoch, to a store that takes its time; the training itself has enough to compute."""

import os
import tempfile
import time

import keras
import numpy as np

STORE = 0.8
"""Seconds that a layer takes to be written."""


@keras.saving.register_keras_serializable()
class Stored(keras.layers.Dense):
    def save_own_variables(self, store):
        super().save_own_variables(store)
        time.sleep(STORE)


keras.utils.set_random_seed(1)
x = np.random.default_rng(1).normal(size=(12800, 1024)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.Input((1024,)), Stored(1024, "relu"), Stored(1024, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
with tempfile.TemporaryDirectory() as directory:
    keeper = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model-{epoch}.keras"))
    model.fit(x, y, batch_size=64, epochs=5, shuffle=False, verbose=0, callbacks=[keeper])
    print(len(os.listdir(directory)), "files")
