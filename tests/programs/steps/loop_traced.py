"""A custom loop over a dataset with a traced step. A step's time runs from one batch's end to the next one's."""

import argparse
import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def build():
    return tf.keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            layers.Conv2D(32, 3, strides=2, activation="relu"),
            layers.Conv2D(48, 3, activation="relu"),
            layers.GlobalMaxPooling2D(),
            layers.Dense(10),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    images = rng.random((320, 32, 32, 3), dtype=np.float32)
    labels = rng.integers(0, 10, 320)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(args.batch).take(args.steps).prefetch(2)
    model = build()
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    times = []
    before = time.perf_counter()
    for x, y in data:
        loss = train_step(x, y)
        now = time.perf_counter()
        times.append(now - before)
        before = now
    print("loss", loss.numpy())
    if os.environ.get("STOPWATCH"):
        with open(os.environ["STOPWATCH"], "w") as out:
            json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)


if __name__ == "__main__":
    main()
