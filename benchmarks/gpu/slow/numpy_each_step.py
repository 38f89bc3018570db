"""Fourteen values are pulled out of the GPU after each step, which waits for each. Cause: host-sync."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "2000"))

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((1024,)), *(layers.Dense(1024, "relu") for _ in range(6)), layers.Dense(10)])
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
inputs = tf.random.normal((16, 512, 1024), seed=1)
labels = tf.random.uniform((16, 512), maxval=10, dtype=tf.int32, seed=1)


@tf.function
def train_step(batch, answers):
    with tf.GradientTape() as tape:
        loss = loss_of(answers, model(batch, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, [tf.norm(gradient) for gradient in gradients]


largest = 0.0
for step in range(STEPS):
    loss, norms = train_step(inputs[step % 16], labels[step % 16])
    largest = max(largest, *(norm.numpy() for norm in norms))
    if loss.numpy() > 100:
        break
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss), "largest", largest)
