"""A traced step with next(iterator) outside it, and an input that costs as much as the step.

A step is fetch plus train: a tool that looks only at the traced call sees half of it.
"""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf

STEPS = 80
rng = np.random.default_rng(2)
table = rng.standard_normal((4096, 256)).astype(np.float32)
answers = rng.standard_normal((4096, 1)).astype(np.float32)


def batches():
    order = np.random.default_rng(7)
    while True:
        rows = order.integers(0, 4096, 128)
        x = table[rows]
        for _ in range(40):
            x = np.tanh(x)
        yield x, answers[rows]


spec = (tf.TensorSpec((128, 256), tf.float32), tf.TensorSpec((128, 1), tf.float32))
iterator = iter(tf.data.Dataset.from_generator(batches, output_signature=spec))
model = tf.keras.Sequential([tf.keras.layers.Dense(768, activation="relu"), tf.keras.layers.Dense(768, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


times = []
for _ in range(STEPS):
    start = time.perf_counter()
    x, y = next(iterator)
    loss = step(x, y)
    times.append(time.perf_counter() - start)

print(f"loss {float(loss):.4f}")
if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
