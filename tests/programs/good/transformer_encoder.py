"""A small transformer encoder that classifies token sequences."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

LENGTH, VOCABULARY, WIDTH = 64, 2000, 64


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.grow = layers.Dense(4 * width, activation="gelu")
        self.shrink = layers.Dense(width)
        self.norm_1 = layers.LayerNormalization()
        self.norm_2 = layers.LayerNormalization()

    def call(self, x):
        x = self.norm_1(x + self.attention(x, x))
        return self.norm_2(x + self.shrink(self.grow(x)))


keras.utils.set_random_seed(7)
tokens = keras.Input((LENGTH,), dtype="int32")
positions = layers.Embedding(LENGTH, WIDTH)(keras.ops.arange(LENGTH))
x = layers.Embedding(VOCABULARY, WIDTH)(tokens) + positions
for _ in range(2):
    x = Block(WIDTH, heads=4)(x)
outputs = layers.Dense(2)(layers.GlobalAveragePooling1D()(x))
model = keras.Model(tokens, outputs)
model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))

rng = np.random.default_rng(7)
sentences = rng.integers(0, VOCABULARY, (32 * 30, LENGTH), dtype="int32")
labels = (sentences[:, 0] % 2).astype("int32")
dataset = tf.data.Dataset.from_tensor_slices((sentences, labels)).batch(32).cache().prefetch(tf.data.AUTOTUNE)
model.fit(dataset, epochs=2, verbose=2)
