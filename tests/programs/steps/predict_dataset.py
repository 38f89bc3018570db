"""One model.predict over a dataset. A step is one predicted batch, timed by a callback."""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf
import keras


class PredictClock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.times = []

    def on_predict_batch_begin(self, batch, logs=None):
        self.start = time.perf_counter()

    def on_predict_batch_end(self, batch, logs=None):
        self.times.append(time.perf_counter() - self.start)


photos = np.random.default_rng(1).random((80 * 16, 48, 48, 3), dtype="float32")
dataset = tf.data.Dataset.from_tensor_slices(photos).batch(16)
inputs = keras.Input((48, 48, 3))
h = keras.layers.Conv2D(32, 3, activation="relu")(inputs)
h = keras.layers.Conv2D(32, 3, activation="relu")(h)
h = keras.layers.GlobalAveragePooling2D()(h)
model = keras.Model(inputs, keras.layers.Dense(4, activation="softmax")(h))

clock = PredictClock()
scores = model.predict(dataset, verbose=0, callbacks=[clock])
print(scores.shape, scores.argmax(1)[:5])

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(clock.times), "median_ms": 1000 * statistics.median(clock.times)}, out)
