"""Replaces sys.excepthook, registers an atexit handler, and raises after some steps."""

import atexit
import sys

import tensorflow as tf


def report(kind, value, trace):
    print("caught by my own hook:", kind.__name__, value, flush=True)


sys.excepthook = report
atexit.register(lambda: print("goodbye", flush=True))

v = tf.Variable(3.0)
optimizer = tf.keras.optimizers.SGD(0.1)
for step in range(40):
    with tf.GradientTape() as tape:
        loss = tf.square(v)
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
raise RuntimeError("the end of it")
