"""Gradients are taken one sample at a time and averaged by hand before the optimizer is applied."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


class Regressor:
    def __init__(self):
        self.network = keras.Sequential(
            [keras.Input((50,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
        )
        self.optimizer = keras.optimizers.SGD(0.05)

    @tf.function
    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.network(x, training=True) - y))
        return loss, tape.gradient(loss, self.network.trainable_variables)

    def learn(self, features, targets):
        total, sums = 0.0, None
        for x, y in zip(features, targets):  # fault: per-sample-loop
            loss, gradients = self.gradients(x[tf.newaxis], y[tf.newaxis])
            total += float(loss)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
        size = len(features)
        self.optimizer.apply_gradients([(g / size, v) for g, v in zip(sums, self.network.trainable_variables)])
        return total / size


def main():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1600, 50)).astype("float32")
    y = np.sin(x[:, :1]).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).prefetch(2)
    regressor = Regressor()
    for _ in range(2):
        losses = [regressor.learn(features, targets) for features, targets in dataset]
        print("mean loss", sum(losses) / len(losses))


if __name__ == "__main__":
    main()
