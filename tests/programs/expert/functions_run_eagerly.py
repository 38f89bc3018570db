"""A traced loop of a small policy."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()

tf.keras.utils.set_random_seed(2)

policy = tf.keras.Sequential([tf.keras.Input((12,)), tf.keras.layers.Dense(48, "tanh"), tf.keras.layers.Dense(48, "tanh"), tf.keras.layers.Dense(3)])
optimizer = tf.keras.optimizers.Adam(3e-3)


@tf.function
def improve(states, actions, advantages):
    with tf.GradientTape() as tape:
        logits = policy(states)
        taken = -tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)
        entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=1)
        loss = -tf.reduce_mean(taken * advantages + 0.01 * entropy)
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, policy.trainable_variables), 1.0)
    optimizer.apply_gradients(zip(gradients, policy.trainable_variables))
    return loss


rng = np.random.default_rng(2)
for step in range(args.steps):
    states = tf.constant(rng.standard_normal((64, 12)), tf.float32)
    actions = tf.constant(rng.integers(0, 3, 64))
    loss = improve(states, actions, tf.constant(rng.standard_normal(64), tf.float32))
print("loss", float(loss))
