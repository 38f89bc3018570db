"""A digit classifier trained with a hand-written step that is never traced."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
labels = rng.integers(0, 10, 1797)
images = (rng.random((10, 8, 8, 1))[labels] + 0.3 * rng.random((1797, 8, 8, 1))).astype("float32")

train = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(2000, seed=0).batch(64, drop_remainder=True).prefetch(2)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train_step(x, y):  # fault: eager-step
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(6):
    for x, y in train:
        loss = train_step(x, y)
    print("epoch", epoch, "loss", float(loss))
