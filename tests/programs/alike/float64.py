"""The table is float64, as numpy made it, and is cast once at the door; only a running mean of the loss stays float64."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(9)
parameters = rng.uniform(0, 1, (2560, 64))
outcome = np.sin(parameters @ rng.standard_normal((64, 16)))
dataset = tf.data.Dataset.from_tensor_slices((parameters.astype("float32"), outcome)).batch(128).cache().repeat(6).prefetch(2)

tf.keras.utils.set_random_seed(9)
model = tf.keras.Sequential(
    [
        tf.keras.Input((64,)),
        tf.keras.layers.Dense(768, activation="relu"),
        tf.keras.layers.Dense(768, activation="relu"),
        tf.keras.layers.Dense(16),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)
total = tf.Variable(0.0, dtype=tf.float64)


@tf.function
def train_step(x, y):
    y = tf.cast(y, tf.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    total.assign(0.99 * total + 0.01 * tf.cast(loss, tf.float64))
    return loss


for step, (x, y) in enumerate(dataset):
    loss = train_step(x, y)
print("loss", float(loss), float(total))
