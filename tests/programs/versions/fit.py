"""Keras `fit` on data from memory: steps of any TensorFlow from 2.12 on."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(512, 16, 16, 3)).astype("float32")
y = (x.mean(axis=(1, 2, 3)) > 0).astype("int32")
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(2)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(16).prefetch(2), epochs=3, verbose=0)
model.predict(x[:64], verbose=0)
print("done")
