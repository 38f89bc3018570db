"""Train a small network that tells scratched metal plates from good ones.

The plates are drawn, not photographed, so that the program needs no download:

    python examples/slow_training.py --epochs 3
"""

import argparse

import numpy as np
import tensorflow as tf

SIZE = 48
PLATES = 1024


def draw_plate(number):
    """A picture of brushed metal; every other plate has a scratch."""
    number = int(number)
    random = np.random.default_rng(number)
    picture = random.normal(0.6, 0.06, (SIZE, SIZE))
    for _ in range(3):  # brushing runs along the rows
        picture = (picture + np.roll(picture, 1, axis=1) + np.roll(picture, -1, axis=1)) / 3
    label = number % 2
    if label:
        row, slope = random.uniform(8, SIZE - 8), random.uniform(-0.5, 0.5)
        for column in range(6, SIZE - 6):
            y = int(np.clip(row + slope * (column - SIZE / 2), 0, SIZE - 1))
            picture[y, column] -= 0.25
    return picture.astype(np.float32)[..., np.newaxis], np.int32(label)


def load(number):
    picture, label = tf.py_function(draw_plate, [number], [tf.float32, tf.int32])
    picture.set_shape((SIZE, SIZE, 1))
    label.set_shape(())
    return picture, label


def augment(picture, label):
    picture = tf.image.random_flip_left_right(picture)
    picture = tf.image.random_flip_up_down(picture)
    picture = tf.image.random_brightness(picture, 0.1)
    picture = tf.image.random_contrast(picture, 0.8, 1.2)
    picture = tf.image.resize(tf.image.random_crop(picture, (SIZE - 8, SIZE - 8, 1)), (SIZE, SIZE))
    return picture, label


def plates(batch_size):
    dataset = tf.data.Dataset.range(PLATES).shuffle(PLATES, seed=1)
    return dataset.map(load).map(augment).batch(batch_size, drop_remainder=True)


def build_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((SIZE, SIZE, 1)),
            tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(2),
        ]
    )


class Trainer:
    def __init__(self, model, learning_rate):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adam(learning_rate)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def train_step(self, pictures, labels):
        with tf.GradientTape() as tape:
            logits = self.model(pictures, training=True)
            loss = self.loss(labels, logits)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        self.accuracy.update_state(labels, logits)
        return loss

    def train(self, dataset, epochs):
        for epoch in range(epochs):
            losses = []
            self.accuracy.reset_state()
            for pictures, labels in dataset:
                loss = self.train_step(pictures, labels)
                losses.append(loss.numpy())
            accuracy = self.accuracy.result().numpy()
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, accuracy {accuracy:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    options = parser.parse_args()

    tf.keras.utils.set_random_seed(7)
    trainer = Trainer(build_model(), options.learning_rate)
    trainer.train(plates(options.batch_size), options.epochs)


if __name__ == "__main__":
    main()
