"""Two threads train a model each, at the same time, while a daemon thread never ends."""

import threading
import time

import numpy as np
import tensorflow as tf

finished = []


def train(seed):
    model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    x = tf.constant(np.random.default_rng(seed).standard_normal((64, 16)), tf.float32)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    for _ in range(60):
        loss = step()
    finished.append((seed, float(loss)))


threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()
threads = [threading.Thread(target=train, args=(seed,)) for seed in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("finished", sorted(seed for seed, _ in finished))
