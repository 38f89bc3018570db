"""Goes to another folder, writes there by a relative path, and stays."""

import os
import tempfile

import numpy as np
import tensorflow as tf

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((640, 4), "float32"), np.ones((640, 1), "float32"), batch_size=16, epochs=2, verbose=0)
    model.save_weights("here.weights.h5")
    print(os.listdir("."))
    os.chdir(os.path.sep)
