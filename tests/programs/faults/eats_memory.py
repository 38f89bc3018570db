"""Limits its own address space and then keeps every activation until memory runs out."""

import resource

import numpy as np
import tensorflow as tf

tf.constant(0.0)
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20, resource.RLIM_INFINITY))

kept = []
weights = tf.Variable(np.ones((512, 512), np.float32))
optimizer = tf.keras.optimizers.SGD(1e-6)
for step in range(10_000):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights * 2.0)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    kept.append(np.full((1024, 1024), step, np.float32))
    if step % 50 == 0:
        print("step", step, "kept", len(kept) * 4, "MB", flush=True)
