"""A convolutional network in mixed precision, compiled by Keras: nothing worth changing."""

import os

import keras
import numpy as np
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
x = layers.Dense(100, dtype="float32")(layers.GlobalAveragePooling2D()(x))
model = keras.Model(images, x)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
random = np.random.default_rng(1)
pictures = random.normal(size=(16 * BATCH, 112, 112, 3)).astype("float32")
labels = random.integers(0, 100, 16 * BATCH)
history = model.fit(pictures, labels, batch_size=BATCH, epochs=max(STEPS // 16, 1), verbose=2)
print("loss", history.history["loss"][-1])
