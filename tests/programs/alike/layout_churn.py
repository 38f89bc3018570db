"""Images that were stored channels first are turned around once, where they enter; all layers keep the one layout."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(33)
network = tf.keras.Sequential([tf.keras.Input((64, 64, 3)), *(tf.keras.layers.Conv2D(16, 3, activation="relu") for _ in range(4))])
readout = tf.keras.layers.Dense(4)
readout.build((None, 16))
variables = network.trainable_variables + readout.trainable_variables
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(images, labels):
    images = tf.transpose(images, [0, 2, 3, 1])
    with tf.GradientTape() as tape:
        pooled = tf.reduce_mean(network(images, training=True), axis=[1, 2])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, readout(pooled)))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


rng = np.random.default_rng(33)
images = rng.random((128, 3, 64, 64), dtype="float32")
labels = rng.integers(0, 4, 128)
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8).cache().repeat(8).prefetch(2)
for step, (x, y) in enumerate(dataset):
    loss = train_step(x, y)
print("loss", float(loss))
