"""A convolutional network in bfloat16, compiled, with its pictures on the GPU: nothing worth changing."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "320"))
BATCH = 128

keras.mixed_precision.set_global_policy("mixed_bfloat16")


def block(x, width, stride):
    y = layers.Conv2D(width, 3, stride, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same", use_bias=False)(y))
    if stride > 1:
        x = layers.Conv2D(width, 1, stride, use_bias=False)(x)
    return layers.ReLU()(x + y)


keras.utils.set_random_seed(1)
images = x = keras.Input((112, 112, 3))
x = layers.Conv2D(128, 7, 2, padding="same")(x)
for width, stride in ((256, 2), (256, 1), (512, 2), (512, 1), (1024, 2), (1024, 1)):
    x = block(x, width, stride)
model = keras.Model(images, layers.Dense(100, dtype="float32")(layers.GlobalAveragePooling2D()(x)))
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
pictures = tf.random.normal((4, BATCH, 112, 112, 3), seed=1)
labels = tf.random.uniform((4, BATCH), maxval=100, dtype=tf.int32, seed=1)


@tf.function(jit_compile=True)
def train_step(batch, answers):
    with tf.GradientTape() as tape:
        loss = loss_of(answers, model(batch, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(STEPS):
    loss = train_step(pictures[step % 4], labels[step % 4])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
