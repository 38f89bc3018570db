"""Raises an error of its own in the twenty-first step."""

import numpy as np
import tensorflow as tf


class DataIsBroken(Exception):
    pass


model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.constant(np.ones((32, 16)), tf.float32)

for step in range(100):
    if step == 20:
        raise DataIsBroken("row 640 has no label")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("step", step)
