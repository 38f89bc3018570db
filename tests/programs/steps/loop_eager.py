"""A custom loop, eager. A step is one application of the optimizer; its time includes fetching the batch."""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(11)
x = rng.standard_normal((70 * 32, 64)).astype(np.float32)
y = rng.integers(0, 3, 70 * 32)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)

model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="tanh"), tf.keras.layers.Dense(3)])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(1e-3)

times = []
before = time.perf_counter()
for features, label in dataset:
    with tf.GradientTape() as tape:
        loss = loss_fn(label, model(features, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    now = time.perf_counter()
    times.append(now - before)
    before = now

print("last loss", float(loss))
if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
