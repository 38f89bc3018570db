"""Gradients are taken of the whole batch."""

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
        loss, gradients = self.gradients(features, targets)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_variables))
        return float(loss)


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
