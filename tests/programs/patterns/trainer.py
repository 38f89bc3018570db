"""A small translation table is learned by a trainer class of its own: loaders, losses, metrics, and an eager step."""

import numpy as np
import tensorflow as tf


class Tagger(tf.keras.Model):
    def __init__(self, words, tags):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(words, 24)
        self.hidden = [tf.keras.layers.Dense(32, activation="relu") for _ in range(4)]
        self.norm = tf.keras.layers.LayerNormalization()
        self.tag = tf.keras.layers.Dense(tags)

    def call(self, words, training=False):
        x = self.embedding(words)
        for layer in self.hidden:
            x = layer(x) + 0.1 * tf.reduce_mean(x, axis=1, keepdims=True)[..., :1]
        return self.tag(self.norm(x))


class Trainer:
    def __init__(self, words=200, tags=12, batch_size=32):
        self.model = Tagger(words, tags)
        self.optimizer = tf.keras.optimizers.Adam(2e-3)
        self.criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.train_loss = tf.keras.metrics.Mean()
        rng = np.random.default_rng(10)
        sentences = rng.integers(0, words, (1600, 15))
        self.data = tf.data.Dataset.from_tensor_slices((sentences, sentences % tags)).batch(batch_size)

    def train_one_step(self, words, tags):
        with tf.GradientTape() as tape:
            logits = self.model(words, training=True)
            loss = self.criterion(tags, logits)
            loss += 1e-5 * tf.add_n([tf.nn.l2_loss(v) for v in self.model.trainable_variables])
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        self.train_loss.update_state(loss)
        return loss

    def train(self, epochs):
        for epoch in range(epochs):
            self.train_loss.reset_state()
            for words, tags in self.data:
                self.train_one_step(words, tags)
            print(f"epoch {epoch} loss {self.train_loss.result():.4f} accuracy {self.evaluate():.3f}")

    def evaluate(self):
        right = [np.mean(np.argmax(self.model(words), -1) == tags) for words, tags in self.data.take(5)]
        return np.mean(right)


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(10)
    Trainer().train(epochs=2)
