"""A policy acts through a graph for every move; eagerly it is only asked at the end, for a few rows to show."""

import numpy as np
import tensorflow as tf

MOVES, BATCH, ACTIONS = 400, 32, 3

tf.keras.utils.set_random_seed(9)
hidden = [tf.keras.layers.Dense(24, activation="relu") for _ in range(4)]
policy = tf.keras.Sequential([tf.keras.Input((6,)), *hidden, tf.keras.layers.Dense(ACTIONS)])
policy.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss="mse")
rng = np.random.default_rng(9)
field = rng.standard_normal((6, ACTIONS))
memory = []
act = tf.function(lambda rows: policy(rows, training=False))

state = rng.standard_normal(6)
for move in range(MOVES):
    values = act(tf.constant(state[np.newaxis], tf.float32))[0].numpy()
    action = int(values.argmax()) if rng.random() > 0.2 else int(rng.integers(ACTIONS))
    memory.append((state, action, float(state @ field[:, action])))
    state = 0.9 * state + 0.1 * rng.standard_normal(6)
    if move % 2 == 0:
        chosen = [memory[i] for i in rng.integers(0, len(memory), BATCH)]
        states = np.array([item[0] for item in chosen], "float32")
        wanted = states @ field
        wanted[range(BATCH), [item[1] for item in chosen]] = [item[2] for item in chosen]
        loss = policy.train_on_batch(states, wanted)
print("loss", float(loss))
for row in rng.standard_normal((6, 6)):
    print(policy(row[np.newaxis])[0].numpy().round(2))
