"""A matrix factorisation recommender with its own trainer class; the class runs eagerly."""

import numpy as np
import tensorflow as tf


class Recommender(tf.keras.Model):
    def __init__(self, users, items, size=32):
        super().__init__()
        self.user = tf.keras.layers.Embedding(users, size)
        self.item = tf.keras.layers.Embedding(items, size)
        self.mix = tf.keras.layers.Dense(32, activation="relu")
        self.score = tf.keras.layers.Dense(1)

    def call(self, pair):
        both = tf.concat([self.user(pair[:, 0]), self.item(pair[:, 1])], axis=1)
        return self.score(self.mix(both))[:, 0]


class Trainer:
    def __init__(self, model, learning_rate=0.01):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adagrad(learning_rate)
        self.history = []

    def update(self, pairs, ratings):  # fault: eager-step
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self.model(pairs) - ratings))
            penalty = tf.add_n([tf.nn.l2_loss(w) for w in self.model.trainable_weights]) * 1e-6
            loss = error + penalty
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def run(self, dataset, epochs):
        for _ in range(epochs):
            mean = tf.keras.metrics.Mean()
            for pairs, ratings in dataset:
                mean.update_state(self.update(pairs, ratings))
            self.history.append(float(mean.result()))
            print("loss", self.history[-1])


def main():
    tf.keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    pairs = np.stack([rng.integers(0, 500, 12800), rng.integers(0, 300, 12800)], axis=1)
    ratings = rng.uniform(1, 5, 12800).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((pairs, ratings)).batch(128)
    Trainer(Recommender(500, 300)).run(dataset, epochs=3)


if __name__ == "__main__":
    main()
