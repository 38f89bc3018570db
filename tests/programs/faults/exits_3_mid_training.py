"""Leaves with sys.exit(3) from a callback in the middle of fit."""

import sys

import numpy as np
from tensorflow import keras


class StopEverything(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 30:
            print("budget spent", flush=True)
            sys.exit(3)


model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((3200, 8), "float32"), np.ones((3200, 1), "float32"), batch_size=32, epochs=5, verbose=0, callbacks=[StopEverything()])
