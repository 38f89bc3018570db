"""model.predict called in a loop, one batch each. A step is one call of predict."""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(2)])
requests = np.random.default_rng(0).standard_normal((64, 1, 20)).astype("float32")

times = []
for request in requests:
    start = time.perf_counter()
    answer = model.predict(request, verbose=0)
    times.append(time.perf_counter() - start)
print(answer)

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
