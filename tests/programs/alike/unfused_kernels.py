"""Many element-wise ops between the products, but Keras compiles the steps of `fit` on a GPU: they are fused."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
tokens = x = keras.Input((64,), dtype="int32")
x = layers.Embedding(2000, 128)(x)
for _ in range(2):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 32)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(128)(layers.Dense(512, "gelu")(x)))
model = keras.Model(tokens, layers.Dense(2000)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
text = np.random.default_rng(1).integers(0, 2000, (320, 64))
model.fit(text, text, batch_size=32, epochs=12, verbose=0)
