"""fit of a tf_keras model (Keras 2). A step is one training batch, from the end of the one before to its own end.

Between its callbacks tf_keras works some more for each batch, so that a clock from begin to end would miss part of it.
"""

import json
import os
import statistics
import time

import numpy as np
import tf_keras as keras


class Timer(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.times = []

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        self.times.append(now - self.start)
        self.start = now


rng = np.random.default_rng(0)
x = rng.random((1280, 24, 24, 3)).astype("float32")
y = keras.utils.to_categorical(rng.integers(0, 5, 1280), 5)

model = keras.Sequential()
model.add(keras.layers.Conv2D(32, 3, activation="relu", input_shape=(24, 24, 3)))
model.add(keras.layers.Conv2D(32, 3, strides=2, activation="relu"))
model.add(keras.layers.GlobalAveragePooling2D())
model.add(keras.layers.Dense(5, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
timer = Timer()
model.fit(x, y, batch_size=32, epochs=3, verbose=2, callbacks=[timer])

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(timer.times), "median_ms": 1000 * statistics.median(timer.times)}, out)
