"""A regression of house prices whose training step is a traced function."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


def houses(count):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, 24)).astype("float32")
    prices = features[:, :3].sum(axis=1) + 0.1 * rng.normal(size=count).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((features, prices.astype("float32")))
    return data.shuffle(count, seed=0).batch(32, drop_remainder=True).prefetch(2)


def main():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(64, activation="gelu") for _ in range(6)]
    model = keras.Sequential([keras.Input((24,)), *layers, keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-3)
    error = keras.metrics.MeanAbsoluteError()
    seen, history = 0, []

    @tf.function
    def step(features, prices):
        with tf.GradientTape() as tape:
            guess = tf.squeeze(model(features, training=True), axis=-1)
            loss = tf.reduce_mean(keras.losses.huber(prices, guess))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        error.update_state(prices, guess)
        return loss

    for epoch in range(4):
        error.reset_state()
        for features, prices in houses(4096):
            loss = step(features, prices)
            seen += 1
            if seen % 50 == 0:
                history.append(float(loss))
        print("epoch", epoch, "error", float(error.result()), "loss", history[-1])


if __name__ == "__main__":
    main()
