"""Deep Q-learning on a small made-up world: predict for every move, predict and fit on what was remembered."""

import random
import tempfile
from collections import deque

import numpy as np
from tensorflow.keras.layers import Dense
from tensorflow.keras.models import Sequential
from tensorflow.keras.optimizers import Adam
from tensorflow.keras.utils import set_random_seed

set_random_seed(3)


class Slope:
    """A sledge that has to stay on its slope; three ways to steer."""

    def reset(self):
        self.state = np.random.uniform(-0.1, 0.1, 4)
        self.moves = 0
        return self.state

    def step(self, action):
        place, speed, lean, turn = self.state
        push = (action - 1) * 0.05
        speed, turn = speed + push - 0.02 * lean, turn + 0.04 * lean - push
        self.state = np.array([place + speed, speed, lean + turn, turn]) + np.random.normal(0, 0.01, 4)
        self.moves += 1
        fallen = abs(self.state[0]) > 1.5 or abs(self.state[2]) > 0.6
        return self.state, -1.0 if fallen else 1.0, fallen or self.moves >= 20


class Agent:
    def __init__(self, state_size, action_size):
        self.state_size = state_size
        self.action_size = action_size
        self.memory = deque(maxlen=1000)
        self.gamma = 0.95
        self.epsilon = 0.9
        self.epsilon_decay = 0.9
        self.model = self.build_model()

    def build_model(self):
        model = Sequential()
        model.add(Dense(24, input_shape=(self.state_size,), activation="relu"))
        model.add(Dense(24, activation="relu"))
        model.add(Dense(self.action_size, activation="linear"))
        model.compile(loss="mse", optimizer=Adam(learning_rate=0.001))
        return model

    def act(self, state):
        if np.random.rand() <= self.epsilon:
            return random.randrange(self.action_size)
        act_values = self.model.predict(state)
        return np.argmax(act_values[0])

    def replay(self, batch_size):
        minibatch = random.sample(self.memory, batch_size)
        states = np.vstack([row[0] for row in minibatch])
        next_states = np.vstack([row[3] for row in minibatch])
        targets = self.model.predict(states, verbose=0)
        future = self.model.predict(next_states, verbose=0)
        for i, (_, action, reward, _, done) in enumerate(minibatch):
            targets[i][action] = reward if done else reward + self.gamma * np.amax(future[i])
        history = self.model.fit(states, targets, epochs=1, verbose=0)
        return history.history["loss"][0]


env = Slope()
agent = Agent(4, 3)
for episode in range(8):
    state = np.reshape(env.reset(), [1, 4])
    total, loss, done = 0.0, 0.0, False
    while not done:
        action = agent.act(state)
        next_state, reward, done = env.step(action)
        next_state = np.reshape(next_state, [1, 4])
        agent.memory.append((state, action, reward, next_state, done))
        state = next_state
        total += reward
        if len(agent.memory) > 32:
            loss = agent.replay(32)
    agent.epsilon *= agent.epsilon_decay
    print("episode", episode, "score", total, "loss", round(loss, 4))
with tempfile.TemporaryDirectory() as folder:
    agent.model.save_weights(f"{folder}/sledge.weights.h5")
