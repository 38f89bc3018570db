"""The program of ../actor_critic.py: moves by a traced call, and one traced step on the states of the whole episode."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(42)
gamma, episodes, longest = 0.98, 14, 40
eps = np.finfo(np.float32).eps.item()


class Pole:
    def reset(self):
        self.state = np.random.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        place, speed, angle, turn = self.state
        force = 1.0 if action == 1 else -1.0
        turn = turn + 0.02 * (9.8 * np.sin(angle) - force * np.cos(angle))
        speed = speed + 0.02 * force
        self.state = np.array([place + 0.02 * speed, speed, angle + 0.05 * turn, turn])
        return self.state, 1.0, abs(self.state[2]) > 0.3


env = Pole()
inputs = layers.Input(shape=(4,))
common = layers.Dense(64, activation="relu")(inputs)
action = layers.Dense(2, activation="softmax")(common)
critic = layers.Dense(1)(common)
model = keras.Model(inputs=inputs, outputs=[action, critic])

optimizer = keras.optimizers.Adam(learning_rate=0.01)
huber_loss = keras.losses.Huber()
running_reward = 0


@tf.function
def chances_of(state):
    return model(state)[0]


@tf.function(reduce_retracing=True)
def learn(states, actions, returns):
    with tf.GradientTape() as tape:
        action_probs, values = model(states)
        log_probs = tf.math.log(tf.gather(action_probs, actions, axis=1, batch_dims=1))
        diff = returns - values[:, 0]
        critic_losses = tf.where(tf.abs(diff) <= 1.0, 0.5 * diff**2, tf.abs(diff) - 0.5)
        loss_value = tf.reduce_sum(-log_probs * diff) + tf.reduce_sum(critic_losses)
    grads = tape.gradient(loss_value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


for episode in range(episodes):
    state = env.reset()
    states, actions, rewards = [], [], []
    for timestep in range(longest):
        states.append(state.astype("float32"))
        chances = chances_of(tf.constant(states[-1][None])).numpy()[0].astype("float64")
        actions.append(np.random.choice(2, p=chances / chances.sum()))
        state, reward, done = env.step(actions[-1])
        rewards.append(reward)
        if done:
            break
    running_reward = 0.05 * sum(rewards) + (1 - 0.05) * running_reward
    returns, discounted_sum = [], 0
    for r in rewards[::-1]:
        discounted_sum = r + gamma * discounted_sum
        returns.insert(0, discounted_sum)
    returns = np.array(returns)
    returns = (returns - np.mean(returns)) / (np.std(returns) + eps)
    learn(tf.constant(np.stack(states)), tf.constant(np.array(actions)), tf.constant(returns, tf.float32))
    if episode % 5 == 4:
        print(f"running reward: {running_reward:.2f} at episode {episode}")
