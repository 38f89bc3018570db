"""Handles SIGTERM itself: writes a last word and leaves with status 7."""

import os
import signal
import sys

import tensorflow as tf


def farewell(number, frame):
    print("saving before", signal.Signals(number).name, flush=True)
    sys.exit(7)


signal.signal(signal.SIGTERM, farewell)
w = tf.Variable(tf.ones((64, 64)))
optimizer = tf.keras.optimizers.SGD(0.001)
for step in range(200):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(w))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    if step == 50:
        os.kill(os.getpid(), signal.SIGTERM)
