"""Prints without end of line, carriage returns, colours and a very long line, and never flushes."""

import sys

import tensorflow as tf

v = tf.Variable(3.0)
optimizer = tf.keras.optimizers.SGD(0.1)
for step in range(60):
    with tf.GradientTape() as tape:
        loss = tf.square(v)
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    sys.stdout.write(f"\r\x1b[32mstep {step}\x1b[0m é 漢")
print("x" * 100_000)
sys.stdout.write("no newline at the end")
