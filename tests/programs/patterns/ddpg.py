"""Deterministic policy gradients: the policy is called for each move, targets follow by way of their weights' arrays."""

import numpy as np
import tensorflow as tf
from tensorflow.keras.layers import Concatenate, Dense, Input

GAMMA, TAU, BATCH, EPISODES, MOVES = 0.97, 0.01, 32, 4, 40

tf.keras.utils.set_random_seed(14)


class Pendulum:
    """Swings; what it costs is the angle, the speed and the push."""

    def reset(self):
        self.angle, self.speed = np.random.uniform(-1, 1, 2)
        return self.look()

    def look(self):
        return np.array([np.cos(self.angle), np.sin(self.angle), self.speed])

    def step(self, push):
        cost = self.angle**2 + 0.1 * self.speed**2 + 0.001 * push**2
        self.speed = np.clip(self.speed + 0.15 * np.sin(self.angle) + 0.05 * push, -4, 4)
        self.angle = (self.angle + 0.05 * self.speed + np.pi) % (2 * np.pi) - np.pi
        return self.look(), -cost


class ReplayBuffer:
    def __init__(self):
        self.rows = []

    def put(self, *row):
        self.rows.append(row)

    def sample(self):
        rows = [self.rows[i] for i in np.random.randint(0, len(self.rows), BATCH)]
        states, actions, rewards, next_states = (np.asarray(one, "float32") for one in zip(*rows))
        return states.reshape(BATCH, -1), actions.reshape(BATCH, -1), rewards.reshape(BATCH, -1), next_states.reshape(BATCH, -1)

    def size(self):
        return len(self.rows)


class Actor:
    def __init__(self):
        self.model = self.create_model()
        self.opt = tf.keras.optimizers.Adam(5e-4)

    def create_model(self):
        state = Input((3,))
        hidden = Dense(32, activation="relu")(state)
        hidden = Dense(32, activation="relu")(hidden)
        push = Dense(1, activation="tanh")(hidden)
        return tf.keras.Model(state, push)

    def train(self, states, q_grads):
        with tf.GradientTape() as tape:
            actions = self.model(states)
        grads = tape.gradient(actions, self.model.trainable_variables, -q_grads)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))

    def predict(self, state):
        return self.model(state)

    def get_action(self, state):
        state = np.reshape(state, [1, 3])
        return self.model(state)[0]


class Critic:
    def __init__(self):
        self.model = self.create_model()
        self.opt = tf.keras.optimizers.Adam(1e-3)

    def create_model(self):
        state, action = Input((3,)), Input((1,))
        seen = Dense(32, activation="relu")(state)
        pushed = Dense(16, activation="relu")(action)
        both = Concatenate(axis=-1)([seen, pushed])
        both = Dense(16, activation="relu")(both)
        return tf.keras.Model([state, action], Dense(1)(both))

    def predict(self, inputs):
        return self.model(inputs)

    def q_grads(self, states, actions):
        states, actions = tf.convert_to_tensor(states), tf.convert_to_tensor(actions)
        with tf.GradientTape() as tape:
            tape.watch(actions)
            q_values = self.model([states, actions])
            q_values = tf.squeeze(q_values)
        return tape.gradient(q_values, actions)

    def train(self, states, actions, td_targets):
        with tf.GradientTape() as tape:
            v_pred = self.model([states, actions], training=True)
            loss = tf.reduce_mean(tf.square(td_targets - v_pred))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss


class Agent:
    def __init__(self, env):
        self.env = env
        self.buffer = ReplayBuffer()
        self.actor, self.critic = Actor(), Critic()
        self.target_actor, self.target_critic = Actor(), Critic()
        self.target_actor.model.set_weights(self.actor.model.get_weights())
        self.target_critic.model.set_weights(self.critic.model.get_weights())

    def target_update(self):
        actor_weights = self.actor.model.get_weights()
        t_actor_weights = self.target_actor.model.get_weights()
        critic_weights = self.critic.model.get_weights()
        t_critic_weights = self.target_critic.model.get_weights()
        for i in range(len(actor_weights)):
            t_actor_weights[i] = TAU * actor_weights[i] + (1 - TAU) * t_actor_weights[i]
        for i in range(len(critic_weights)):
            t_critic_weights[i] = TAU * critic_weights[i] + (1 - TAU) * t_critic_weights[i]
        self.target_actor.model.set_weights(t_actor_weights)
        self.target_critic.model.set_weights(t_critic_weights)

    def td_target(self, rewards, q_values):
        targets = np.asarray(q_values)
        for i in range(q_values.shape[0]):
            targets[i] = rewards[i] + GAMMA * q_values[i]
        return targets

    def replay(self):
        states, actions, rewards, next_states = self.buffer.sample()
        target_q_values = self.target_critic.predict([next_states, self.target_actor.predict(next_states).numpy()])
        td_targets = self.td_target(rewards, target_q_values.numpy())
        self.critic.train(states, actions, td_targets)
        s_actions = self.actor.predict(states)
        s_grads = self.critic.q_grads(states, s_actions)
        grads = np.array(s_grads).reshape((-1, 1))
        self.actor.train(states, grads)
        self.target_update()

    def train(self):
        for episode in range(EPISODES):
            state, total = self.env.reset(), 0.0
            for _ in range(MOVES):
                action = self.actor.get_action(state)
                action = np.clip(action + 0.1 * np.random.randn(1), -1.0, 1.0)
                next_state, reward = self.env.step(float(action[0]))
                self.buffer.put(state, action, reward / 8, next_state)
                total += reward
                state = next_state
                if self.buffer.size() >= 64:
                    self.replay()
            print(f"episode {episode} reward {total:.2f}")


if __name__ == "__main__":
    Agent(Pendulum()).train()
