"""The loop over the dataset stands inside a tf.function: one call is a whole epoch of 40 steps.

A step's time is that of an epoch after the first, divided by its batches.
"""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf

BATCHES, EPOCHS = 40, 12
rng = np.random.default_rng(4)
x = rng.standard_normal((BATCHES * 64, 400)).astype("float32")
y = rng.integers(0, 7, BATCHES * 64).astype("int32")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64, drop_remainder=True)

model = tf.keras.Sequential([tf.keras.Input((400,)), tf.keras.layers.Dense(1024, "relu"), tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(7)])
optimizer = tf.keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def epoch(batches):
    total = 0.0
    for features, labels in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(features)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        total += loss
    return total


seconds = []
for number in range(EPOCHS):
    start = time.perf_counter()
    total = epoch(dataset)
    seconds.append(time.perf_counter() - start)
    print("epoch", number, "loss", float(total) / BATCHES)

if os.environ.get("STOPWATCH"):
    per_step = [1000 * s / BATCHES for s in seconds[1:]]
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": BATCHES * EPOCHS, "median_ms": statistics.median(per_step)}, out)
