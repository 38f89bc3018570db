"""The same network in float32."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "400"))
WIDTH, BATCH = 4096, 2048

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((WIDTH,)), *(layers.Dense(WIDTH, "relu") for _ in range(4)), layers.Dense(10)])
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
rows = tf.random.normal((4, BATCH, WIDTH), seed=1)
labels = tf.random.uniform((4, BATCH), maxval=10, dtype=tf.int32, seed=1)


@tf.function
def train_step(batch, answers):
    with tf.GradientTape() as tape:
        loss = loss_of(answers, model(batch, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(STEPS):
    loss = train_step(rows[step % 4], labels[step % 4])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
