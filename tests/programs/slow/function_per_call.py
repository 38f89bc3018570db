"""Several small models are tuned in turn; the helper that makes a step wraps it in tf.function at every batch."""

import numpy as np
import tensorflow as tf


def make_model(width):
    return tf.keras.Sequential([tf.keras.Input((30,)), tf.keras.layers.Dense(width, activation="relu"), tf.keras.layers.Dense(1)])


class Tuner:
    def __init__(self, width):
        self.model = make_model(width)
        self.optimizer = tf.keras.optimizers.SGD(0.01)

    def _step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(self.model(x, training=True) - y))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def train_on(self, x, y):
        step = tf.function(self._step)  # fault: function-per-call
        return step(x, y)


def main():
    tf.keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x = tf.constant(rng.standard_normal((64, 30)), tf.float32)
    y = tf.constant(rng.standard_normal((64, 1)), tf.float32)
    for width in (64, 128):
        tuner = Tuner(width)
        for _ in range(40):
            loss = tuner.train_on(x, y)
        print(width, float(loss))


if __name__ == "__main__":
    main()
