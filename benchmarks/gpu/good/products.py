"""Large products in bfloat16 in one traced, compiled function: nothing worth changing."""

import os

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", "400"))

weights = [tf.Variable(tf.cast(tf.random.normal((8192, 8192), stddev=0.01, seed=i), tf.bfloat16)) for i in range(4)]


@tf.function(jit_compile=True)
def step(x):
    with tf.GradientTape() as tape:
        for weight in weights:
            x = tf.nn.relu(x @ weight)
        loss = tf.reduce_mean(tf.cast(x, tf.float32))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(gradient * tf.cast(0.01, tf.bfloat16))
    return loss


batch = tf.cast(tf.random.normal((8192, 8192), seed=9), tf.bfloat16)
for number in range(STEPS):
    loss = step(batch)
    if (number + 1) % (STEPS // 8) == 0:
        print("step", number + 1, "loss", float(loss), flush=True)
print("loss", float(loss))
