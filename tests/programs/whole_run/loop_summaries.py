"""A loop that writes all weights as a summary at every step."""

import tempfile
import time

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(3200, 64)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).batch(32).prefetch(2)
weights = tf.Variable(tf.random.normal((64, 10_000)) * 0.1)
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(batch, weights[:, :64]) ** 2)
    gradient = tape.gradient(loss, weights)
    optimizer.apply_gradients([(tf.convert_to_tensor(gradient), weights)])
    return loss


planted = 0.0
with tempfile.TemporaryDirectory() as directory, tf.summary.create_file_writer(directory).as_default():
    step = 0
    for _ in range(2):
        for batch in train:
            train_step(batch)
            began = time.perf_counter()
            tf.summary.write("weights", weights, step=step)  # fault: summary-bound
            planted += time.perf_counter() - began
            step += 1
print(f"planted {planted:.3f}")
