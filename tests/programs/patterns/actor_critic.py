"""An actor and its critic balance a made-up pole: the episode, its environment and numpy are all inside of the tape."""

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
action_probs_history = []
critic_value_history = []
rewards_history = []
running_reward = 0

for episode in range(episodes):
    state = env.reset()
    episode_reward = 0
    with tf.GradientTape() as tape:
        for timestep in range(longest):
            state = tf.convert_to_tensor(state)
            state = tf.expand_dims(state, 0)
            action_probs, critic_value = model(state)
            critic_value_history.append(critic_value[0, 0])
            chances = np.squeeze(action_probs).astype("float64")
            action = np.random.choice(2, p=chances / chances.sum())
            action_probs_history.append(tf.math.log(action_probs[0, action]))
            state, reward, done = env.step(action)
            rewards_history.append(reward)
            episode_reward += reward
            if done:
                break

        running_reward = 0.05 * episode_reward + (1 - 0.05) * running_reward
        returns = []
        discounted_sum = 0
        for r in rewards_history[::-1]:
            discounted_sum = r + gamma * discounted_sum
            returns.insert(0, discounted_sum)
        returns = np.array(returns)
        returns = (returns - np.mean(returns)) / (np.std(returns) + eps)
        returns = returns.tolist()

        actor_losses = []
        critic_losses = []
        for log_prob, value, ret in zip(action_probs_history, critic_value_history, returns):
            diff = ret - value
            actor_losses.append(-log_prob * diff)
            critic_losses.append(huber_loss(tf.expand_dims(value, 0), tf.expand_dims(ret, 0)))
        loss_value = sum(actor_losses) + sum(critic_losses)
    grads = tape.gradient(loss_value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

    action_probs_history.clear()
    critic_value_history.clear()
    rewards_history.clear()
    if episode % 5 == 4:
        print(f"running reward: {running_reward:.2f} at episode {episode}")
