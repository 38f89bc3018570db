"""A traced loop whose last batch is smaller: two traces are right, and no reason to complain."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
x = rng.random((64 * 20 + 30, 28, 28, 1), dtype="float32")
y = rng.integers(0, 10, len(x))
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Conv2D(48, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for epoch in range(4):
    for images, labels in dataset:
        loss = train_step(images, labels)
    print("epoch", epoch, "loss", float(loss))
