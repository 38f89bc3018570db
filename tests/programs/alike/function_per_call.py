"""Four models are tuned in turn, and the helper wraps a step in tf.function once for each model, not for each batch."""

import numpy as np
import tensorflow as tf


def make_step(model):
    optimizer = tf.keras.optimizers.SGD(0.01)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return tf.function(step)


tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x = tf.constant(rng.standard_normal((256, 30)), tf.float32)
y = tf.constant(rng.standard_normal((256, 1)), tf.float32)
for width in (512, 640, 768, 896):
    model = tf.keras.Sequential(
        [tf.keras.Input((30,)), tf.keras.layers.Dense(width, activation="relu"), tf.keras.layers.Dense(width), tf.keras.layers.Dense(1)]
    )
    step = make_step(model)
    for _ in range(80):
        loss = step(x, y)
    print(width, float(loss))
