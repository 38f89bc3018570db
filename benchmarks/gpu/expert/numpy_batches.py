"""As in slow/, with bytes sent to the GPU ahead of the step and scaled there."""

import os

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "500"))
BATCH = 256

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        layers.Conv2D(32, 3, 2, activation="relu"),
        layers.Conv2D(64, 3, 2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ]
)
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
random = np.random.default_rng(1)
pictures = random.integers(0, 255, (4096, 64, 64, 3), dtype="uint8")
labels = random.integers(0, 10, 4096)


@tf.function
def train_step(batch, answers):
    batch = (tf.cast(batch, tf.float32) / 255.0 - 0.5) * 2.0
    with tf.GradientTape() as tape:
        loss = loss_of(answers, model(batch, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


rows = random.integers(0, len(pictures), (STEPS, BATCH))
dataset = tf.data.Dataset.from_tensor_slices(rows)
held, answers = tf.constant(pictures), tf.constant(labels)
dataset = dataset.map(lambda some: (tf.gather(held, some), tf.gather(answers, some)), tf.data.AUTOTUNE)
for step, (batch, some) in enumerate(dataset.prefetch(tf.data.AUTOTUNE)):
    loss = train_step(batch, some)
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
