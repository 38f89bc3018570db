"""Recurses until the interpreter stops it, after having trained a little."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((400, 4), "float32"), np.ones((400, 1), "float32"), batch_size=10, verbose=0)


def depth_of(tree):
    return 1 + depth_of({"child": tree})


print(depth_of({}))
