"""A critic learns in a traced step; the network that gives it targets follows in another one."""

import numpy as np
import tensorflow as tf

STEPS, BATCH, SHARE, DISCOUNT = 300, 32, 0.02, 0.95

tf.keras.utils.set_random_seed(8)


def network():
    hidden = [tf.keras.layers.Dense(24, activation="relu") for _ in range(4)]
    return tf.keras.Sequential([tf.keras.Input((5,)), *hidden, tf.keras.layers.Dense(1)])


critic, target = network(), network()
optimizer = tf.keras.optimizers.Adam(1e-3)
rng = np.random.default_rng(8)
states = rng.standard_normal((2000, 5)).astype("float32")
rewards = np.tanh(states.sum(axis=1, keepdims=True))


@tf.function
def learn(now, reward, then):
    wanted = reward + DISCOUNT * target(then)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(wanted - critic(now, training=True)))
    variables = critic.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


@tf.function
def follow():
    for old, new in zip(target.weights, critic.weights):
        old.assign(SHARE * new + (1 - SHARE) * old)


for step in range(STEPS):
    rows = rng.integers(0, 1999, BATCH)
    loss = learn(tf.constant(states[rows]), tf.constant(rewards[rows]), tf.constant(states[rows + 1]))
    follow()
print("loss", float(loss))
