"""Forks a child that leaves at once with a status of its own; the parent goes on training."""

import os

import numpy as np
import tensorflow as tf

pid = os.fork()
if pid == 0:
    print("child", flush=True)
    os._exit(4)
_, status = os.waitpid(pid, 0)
print("child left with", os.waitstatus_to_exitcode(status), flush=True)

model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((2000, 10), "float32"), np.ones((2000, 1), "float32"), batch_size=20, verbose=0)
print("trained")
