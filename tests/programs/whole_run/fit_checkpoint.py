"""The whole model is saved after every tenth batch of `fit`."""

import os
import tempfile
import time

import keras
import numpy as np

PLANTED = [0.0]


class Before(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        PLANTED[0] -= time.perf_counter()


class After(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        PLANTED[0] += time.perf_counter()


x = np.random.default_rng(1).normal(size=(3200, 32)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(400, activation="relu") for _ in range(3)] + [keras.layers.Dense(1)])
model.compile("adam", "mse")
with tempfile.TemporaryDirectory() as directory:
    keeper = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model.keras"), save_freq=10)
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[Before(), keeper, After()])  # fault: checkpoint-bound
print(f"planted {PLANTED[0]:.3f}")
