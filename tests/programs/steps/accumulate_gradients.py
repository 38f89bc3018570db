"""Gradient accumulation: a traced gradient per batch, an eager application on every fourth batch.

A step is one application of the optimizer, so that 240 batches are 60 steps.
"""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf

EVERY = 4
rng = np.random.default_rng(17)
x = rng.standard_normal((240 * 32, 256)).astype("float32")
y = rng.standard_normal((240 * 32, 1)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)

model = tf.keras.Sequential([tf.keras.Input((256,)), tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def gradients_of(features, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(features) - targets)) / EVERY
    return loss, tape.gradient(loss, model.trainable_variables)


times = []
held = None
before = time.perf_counter()
for number, (features, targets) in enumerate(dataset, start=1):
    loss, fresh = gradients_of(features, targets)
    held = fresh if held is None else [a + b for a, b in zip(held, fresh)]
    if number % EVERY == 0:
        optimizer.apply_gradients(zip(held, model.trainable_variables))
        held = None
        now = time.perf_counter()
        times.append(now - before)
        before = now
print("loss", float(loss) * EVERY)

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
