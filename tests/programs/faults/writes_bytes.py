"""Writes bytes that are no text to standard output and standard error."""

import sys

import tensorflow as tf

v = tf.Variable(1.0)
optimizer = tf.keras.optimizers.SGD(0.1)
for step in range(30):
    with tf.GradientTape() as tape:
        loss = v * v
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.buffer.flush()
sys.stderr.buffer.write(b"\xff\xfe not text\n")
