"""A table of readings is scaled row by row before it is batched."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

ROWS, COLUMNS = 60_000, 24

rng = np.random.default_rng(0)
table = rng.normal(20, 5, (ROWS, COLUMNS)).astype("float32")
target = (table[:, 0] - table[:, 1] > 0).astype("float32")
mean, spread = table.mean(axis=0), table.std(axis=0)


def scale(row, answer):
    return (row - mean) / spread, answer


train = (
    tf.data.Dataset.from_tensor_slices((table, target))
    .map(scale)  # fault: late-batch
    .batch(512)
    .prefetch(tf.data.AUTOTUNE)
)

keras.utils.set_random_seed(2)
inputs = keras.Input((COLUMNS,))
x = keras.layers.Dense(32, activation="relu")(inputs)
outputs = keras.layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(train, epochs=3, verbose=2)
