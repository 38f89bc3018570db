"""Keras fit with steps_per_execution=8.

One call of the train function is eight steps, and Keras calls the callbacks once a call: the stopwatch runs from the
begin to the end of a call and divides by eight. The first calls of an epoch set the iterator up and are not steady.
"""

import json
import os
import statistics
import time

import numpy as np
import keras

BATCHES = 64
EPOCHS = 4

rng = np.random.default_rng(0)
x = rng.standard_normal((BATCHES * 64, 512), dtype="float32")
y = rng.standard_normal((BATCHES * 64, 1), dtype="float32")


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.seconds.append(time.perf_counter() - self.start)


inputs = keras.Input((512,))
hidden = keras.layers.Dense(1024, activation="relu")(inputs)
hidden = keras.layers.Dense(1024, activation="relu")(hidden)
outputs = keras.layers.Dense(1)(hidden)
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse", steps_per_execution=8)

clock = Clock()
model.fit(x, y, batch_size=64, epochs=EPOCHS, verbose=0, callbacks=[clock])

path = os.environ.get("STOPWATCH")
if path:
    per_step = [1000 * seconds / 8 for seconds in clock.seconds[1:]]
    with open(path, "w") as out:
        json.dump({"count": BATCHES * EPOCHS, "median_ms": statistics.median(per_step)}, out)
