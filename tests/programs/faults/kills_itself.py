"""Is killed by SIGKILL after some steps, as the kernel does when memory is short."""

import os
import signal

import tensorflow as tf

w = tf.Variable(tf.random.normal((256, 256)))
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(w @ w))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss


for number in range(100):
    step()
    if number == 40:
        print("about to be killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
