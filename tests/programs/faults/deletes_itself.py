"""Copies itself to a folder, runs from there, and deletes its file and folder while training.

Run as it is, it starts the copy in its own process, so that the original stays.
"""

import os
import runpy
import shutil
import sys
import tempfile

if os.environ.get("DELETES_ITSELF") != "yes":
    folder = tempfile.mkdtemp()
    copy = shutil.copy(__file__, os.path.join(folder, "train.py"))
    os.environ["DELETES_ITSELF"] = "yes"
    os.chdir(folder)
    runpy.run_path(copy, run_name="__main__")
    sys.exit(0)

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

shutil.rmtree(os.path.dirname(os.path.abspath(__file__)))
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for _ in range(40):
    loss = step(tf.constant(np.ones((8, 4)), tf.float32))
print("trained; my file is", "there" if os.path.exists(__file__) else "gone")
