"""numpy makes each batch in the loop, in float64: 25 MB go to the GPU where 3 MB would do. Cause: step-overhead."""

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
    with tf.GradientTape() as tape:
        loss = loss_of(answers, model(batch, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(STEPS):
    rows = random.integers(0, len(pictures), BATCH)
    batch = (pictures[rows] / 255.0 - 0.5) * 2.0
    loss = train_step(batch, labels[rows])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
