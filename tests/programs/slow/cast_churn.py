"""An image filter network that turns every activation into half precision and back "to save memory"."""

import numpy as np
import tensorflow as tf


def halved(tensor):
    return tf.cast(tf.cast(tensor, tf.float16), tf.float32)  # fault: cast-churn


class FilterBank(tf.keras.layers.Layer):
    def __init__(self, stages):
        super().__init__()
        self.stages = stages

    def build(self, shape):
        self.gains = [self.add_weight(shape=(shape[-1],), initializer="ones") for _ in range(self.stages)]
        self.shifts = [self.add_weight(shape=(shape[-1],), initializer="zeros") for _ in range(self.stages)]

    def call(self, x):
        for gain, shift in zip(self.gains, self.shifts):
            x = halved(x)
            x = halved(x * gain)
            x = halved(tf.nn.relu(x + shift))
        return x


tf.keras.utils.set_random_seed(13)
model = tf.keras.Sequential([tf.keras.Input((64, 64, 8)), FilterBank(4), tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(3)])
optimizer = tf.keras.optimizers.SGD(0.01)
images = tf.constant(np.random.default_rng(13).random((16, 64, 64, 8)), tf.float32)
labels = tf.constant(np.random.default_rng(14).integers(0, 3, 16))


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for number in range(160):
    loss = step()
    if number % 25 == 0:
        print(number, float(loss))
