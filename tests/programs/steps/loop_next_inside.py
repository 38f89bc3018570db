"""A traced step that takes next(iterator) inside. A step is one call of the traced function."""

import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf


class Experiment:
    def __init__(self):
        rng = np.random.default_rng(21)
        x = rng.standard_normal((2000, 300)).astype("float32")
        y = rng.standard_normal((2000, 4)).astype("float32")
        self.dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(2000, seed=0).repeat().batch(100)
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1000, "relu"), tf.keras.layers.Dense(1000, "relu"), tf.keras.layers.Dense(4)])
        self.optimizer = tf.keras.optimizers.RMSprop(1e-4)

    @tf.function
    def train(self, iterator):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x, training=True) - y))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


experiment = Experiment()
iterator = iter(experiment.dataset)
times = []
for number in range(90):
    start = time.perf_counter()
    loss = experiment.train(iterator)
    times.append(time.perf_counter() - start)
    if number % 30 == 0:
        print(number, float(loss))

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
