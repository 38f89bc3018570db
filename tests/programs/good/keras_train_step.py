"""A Keras model with its own train_step (an autoencoder with a sparse code)."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


class SparseAutoencoder(keras.Model):
    def __init__(self, size, code):
        super().__init__()
        self.encoder = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(code, activation="relu")])
        self.decoder = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(size)])
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x):
        return self.decoder(self.encoder(x))

    def train_step(self, x):
        with tf.GradientTape() as tape:
            code = self.encoder(x, training=True)
            loss = tf.reduce_mean(tf.square(self.decoder(code, training=True) - x)) + 1e-4 * tf.reduce_mean(tf.abs(code))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


if __name__ == "__main__":
    keras.utils.set_random_seed(3)
    data = np.random.default_rng(3).standard_normal((200 * 25, 784)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(200).prefetch(tf.data.AUTOTUNE)
    model = SparseAutoencoder(784, 128)
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    model.fit(dataset, epochs=3, verbose=2)
