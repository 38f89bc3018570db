"""A callback that keeps a log of every batch, in Python, and sorts it each time."""

import time

import keras
import numpy as np

PLANTED = [0.0]


class Log(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):  # fault: slow-callback
        began = time.perf_counter()
        self.losses.append(logs["loss"])
        while time.perf_counter() - began < 0.012:
            sorted(self.losses)
        PLANTED[0] += time.perf_counter() - began


x = np.random.default_rng(1).normal(size=(3200, 32)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[Log()])
print(f"planted {PLANTED[0]:.3f}")
