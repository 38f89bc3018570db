"""The samples of a batch go through the network one by one. Cause: per-sample-loop."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "400"))
BATCH = 32

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [keras.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.Flatten(), layers.Dense(10)]
)
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
pictures = tf.random.normal((8, BATCH, 32, 32, 3), seed=1)
labels = tf.random.uniform((8, BATCH), maxval=10, dtype=tf.int32, seed=1)


@tf.function
def train_step(batch, answers):
    with tf.GradientTape() as tape:
        loss = 0.0
        for i in range(BATCH):
            loss += loss_of(answers[i : i + 1], model(batch[i : i + 1], training=True)) / BATCH
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(STEPS):
    loss = train_step(pictures[step % 8], labels[step % 8])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
