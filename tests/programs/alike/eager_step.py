"""The tape and the update stand in a plain method, which a traced method calls: nothing runs eagerly."""

import numpy as np
import tensorflow as tf


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adagrad(0.01)

    def update(self, pairs, ratings):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(pairs)[:, 0] - ratings))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def traced(self, pairs, ratings):
        return self.update(pairs, ratings)

    def run(self, dataset, epochs):
        mean = tf.keras.metrics.Mean()
        for _ in range(epochs):
            for pairs, ratings in dataset:
                mean.update_state(self.traced(pairs, ratings))
            print("loss", float(mean.result()))
            mean.reset_state()


tf.keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
pairs = rng.standard_normal((12800, 64)).astype("float32")
ratings = rng.uniform(1, 5, 12800).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((pairs, ratings)).batch(128).prefetch(2)
model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
Trainer(model).run(dataset, epochs=3)
