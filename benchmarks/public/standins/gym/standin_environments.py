"""Small environments with the interfaces of the well-known ones; the physics is our own and simple.

Two interfaces: the old one (`reset() -> state`, `step() -> state, reward, done, info`) and the new one (`reset() ->
state, info`, `step() -> state, reward, terminated, truncated, info`). GYM_API chooses for `gym`; `gymnasium` is new.
"""

import importlib
import math
import os

import numpy as np
from standin_spaces import Box, Discrete


class Env:
    metadata = {"render_modes": ["human", "rgb_array"], "render.modes": ["human", "rgb_array"]}  # noqa: RUF012
    reward_range = (-math.inf, math.inf)
    limit = 200
    spec = None
    new = os.environ.get("GYM_API") == "new"

    def __init__(self):
        self.np_random = np.random.default_rng(0)
        self.count = 0

    @property
    def unwrapped(self):
        return self

    @property
    def _max_episode_steps(self):
        return self.limit

    @_max_episode_steps.setter
    def _max_episode_steps(self, value):
        self.limit = value

    def seed(self, seed=None):
        self.np_random = np.random.default_rng(seed)
        return [seed]

    def reset(self, seed=None, options=None, **others):
        if seed is not None:
            self.seed(seed)
        self.count = 0
        state = self.begin()
        return (state, {}) if self.new else state

    def step(self, action):
        state, reward, over = self.advance(action)
        self.count += 1
        late = self.limit is not None and self.count >= self.limit
        return (state, reward, over, late, {}) if self.new else (state, reward, over or late, {})

    def render(self, mode="human", **others):
        return np.zeros((40, 60, 3), np.uint8) if mode == "rgb_array" else None

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class CartPole(Env):
    def __init__(self, limit=200):
        super().__init__()
        self.limit = limit
        bound = np.array([4.8, np.finfo(np.float32).max, 0.42, np.finfo(np.float32).max], np.float32)
        self.observation_space, self.action_space = Box(-bound, bound), Discrete(2)

    def begin(self):
        self.state = self.np_random.uniform(-0.05, 0.05, 4)
        return self.state.astype(np.float32)

    def advance(self, action):
        x, speed, angle, turning = self.state
        force = 10.0 if int(action) == 1 else -10.0
        push = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        pull = push - 0.05 * turn * math.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * turn])
        over = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095)
        return self.state.astype(np.float32), 1.0, over


class Pendulum(Env):
    def __init__(self, limit=200):
        super().__init__()
        self.limit = limit
        self.observation_space = Box(np.array([-1, -1, -8], np.float32), np.array([1, 1, 8], np.float32))
        self.action_space = Box(-2.0, 2.0, (1,))
        self.max_torque, self.max_speed = 2.0, 8.0

    def begin(self):
        self.angle, self.speed = self.np_random.uniform([-math.pi, -1], [math.pi, 1])
        return self.seen()

    def seen(self):
        return np.array([math.cos(self.angle), math.sin(self.angle), self.speed], np.float32)

    def advance(self, action):
        torque = float(np.clip(np.reshape(action, -1)[0], -2, 2))
        turned = (self.angle + math.pi) % (2 * math.pi) - math.pi
        cost = turned**2 + 0.1 * self.speed**2 + 0.001 * torque**2
        self.speed = float(np.clip(self.speed + 0.05 * (15 * math.sin(self.angle) + 3 * torque), -8, 8))
        self.angle += 0.05 * self.speed
        return self.seen(), -cost, False


class MountainCar(Env):
    def __init__(self, limit=200, continuous=False):
        super().__init__()
        self.limit, self.continuous = limit, continuous
        self.observation_space = Box(np.array([-1.2, -0.07], np.float32), np.array([0.6, 0.07], np.float32))
        self.action_space = Box(-1.0, 1.0, (1,)) if continuous else Discrete(3)

    def begin(self):
        self.x, self.speed = self.np_random.uniform(-0.6, -0.4), 0.0
        return np.array([self.x, self.speed], np.float32)

    def advance(self, action):
        force = float(np.reshape(action, -1)[0]) if self.continuous else int(action) - 1
        self.speed = float(np.clip(self.speed + 0.0015 * force - 0.0025 * math.cos(3 * self.x), -0.07, 0.07))
        self.x = float(np.clip(self.x + self.speed, -1.2, 0.6))
        if self.x == -1.2:
            self.speed = max(self.speed, 0.0)
        over = self.x >= 0.5
        reward = (100.0 * over - 0.1 * force**2) if self.continuous else -1.0
        return np.array([self.x, self.speed], np.float32), reward, over


class Vector(Env):
    """States of any size that an action pushes along (Acrobot, LunarLander, BipedalWalker, …)."""

    def __init__(self, size, actions, limit=500, continuous=False):
        super().__init__()
        self.limit, self.size = limit, size
        self.observation_space = Box(-np.inf, np.inf, (size,))
        self.action_space = Box(-1.0, 1.0, (actions,)) if continuous else Discrete(actions)
        self.pushes = np.random.default_rng(7).normal(size=(actions, size)) * 0.1
        self.continuous = continuous

    def begin(self):
        self.state = self.np_random.normal(size=self.size) * 0.1
        return self.state.astype(np.float32)

    def advance(self, action):
        push = np.reshape(action, -1) @ self.pushes if self.continuous else self.pushes[int(action)]
        self.state = 0.98 * self.state + push + self.np_random.normal(size=self.size) * 0.02
        away = float(np.linalg.norm(self.state))
        return self.state.astype(np.float32), -away, away > 5


class Grid(Env):
    """Numbered places (FrozenLake, Taxi, CliffWalking, …)."""

    def __init__(self, places, actions, limit=100):
        super().__init__()
        self.limit, self.places = limit, places
        self.observation_space, self.action_space = Discrete(places), Discrete(actions)
        self.nS, self.nA = places, actions

    def begin(self):
        self.place = 0
        return 0

    def advance(self, action):
        side = max(int(math.sqrt(self.places)), 1)
        moves = (-1, side, 1, -side, 0, 2)
        self.place = (self.place + moves[int(action) % 6]) % self.places
        goal, hole = self.place == self.places - 1, self.place % 7 == 5
        return self.place, float(goal), goal or hole


class Pictures(Env):
    """A ball and a bat on 210 x 160 pixels, for programs that read Atari's screen."""

    def __init__(self, actions=4, limit=1000):
        super().__init__()
        self.limit = limit
        self.observation_space, self.action_space = Box(0, 255, (210, 160, 3), np.uint8), Discrete(actions)

    def begin(self):
        self.bat, self.ball, self.way, self.left = 80, np.array([30.0, 80.0]), np.array([3.0, 2.0]), 5
        return self.screen()

    def screen(self):
        picture = np.zeros((210, 160, 3), np.uint8)
        picture[190:194, max(self.bat - 10, 0) : self.bat + 10] = 200
        row, column = self.ball.astype(int)
        picture[row : row + 4, column : column + 4] = 255
        return picture

    def advance(self, action):
        self.bat = int(np.clip(self.bat + {2: 6, 3: -6}.get(int(action) % 6, 0), 10, 150))
        self.ball += self.way
        if not 2 < self.ball[1] < 154:
            self.way[1] *= -1
        if self.ball[0] < 2:
            self.way[0] = 3.0
        reward = 0.0
        if self.ball[0] > 188:
            hit = abs(self.ball[1] - self.bat) < 14
            reward, self.way[0], self.left = (1.0, -3.0, self.left) if hit else (-1.0, -3.0, self.left - 1)
        self.ball = np.clip(self.ball, 1, 200)
        return self.screen(), reward, self.left == 0

    def get_action_meanings(self):
        return ["NOOP", "FIRE", "RIGHT", "LEFT", "UP", "DOWN"][: self.action_space.n]


class Wrapper(Env):
    def __init__(self, env):
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def __getattr__(self, name):
        return getattr(self.env, name)

    @property
    def unwrapped(self):
        return self.env.unwrapped

    def seed(self, seed=None):
        return self.env.seed(seed)

    def reset(self, **others):
        return self.env.reset(**others)

    def step(self, action):
        return self.env.step(action)

    def render(self, *arguments, **others):
        return self.env.render(*arguments, **others)

    def close(self):
        return self.env.close()


class ObservationWrapper(Wrapper):
    def reset(self, **others):
        found = self.env.reset(**others)
        return (self.observation(found[0]), found[1]) if self.env.unwrapped.new else self.observation(found)

    def step(self, action):
        state, *rest = self.env.step(action)
        return (self.observation(state), *rest)


class RewardWrapper(Wrapper):
    def step(self, action):
        state, reward, *rest = self.env.step(action)
        return (state, self.reward(reward), *rest)


class ActionWrapper(Wrapper):
    def step(self, action):
        return self.env.step(self.action(action))


MAKERS = {
    "CartPole-v0": lambda: CartPole(200),
    "CartPole-v1": lambda: CartPole(500),
    "Pendulum-v0": Pendulum,
    "Pendulum-v1": Pendulum,
    "MountainCar-v0": MountainCar,
    "MountainCarContinuous-v0": lambda: MountainCar(999, continuous=True),
    "Acrobot-v1": lambda: Vector(6, 3),
    "LunarLander-v2": lambda: Vector(8, 4),
    "LunarLander-v3": lambda: Vector(8, 4),
    "LunarLanderContinuous-v2": lambda: Vector(8, 2, continuous=True),
    "BipedalWalker-v2": lambda: Vector(24, 4, continuous=True),
    "BipedalWalker-v3": lambda: Vector(24, 4, continuous=True),
    "HalfCheetah-v2": lambda: Vector(17, 6, continuous=True),
    "FrozenLake-v0": lambda: Grid(16, 4),
    "FrozenLake-v1": lambda: Grid(16, 4),
    "Taxi-v2": lambda: Grid(500, 6, 200),
    "Taxi-v3": lambda: Grid(500, 6, 200),
    "CliffWalking-v0": lambda: Grid(48, 4),
}
SCREENS = ("Breakout", "Pong", "SpaceInvaders", "MsPacman", "Seaquest", "Assault", "Qbert", "CarRacing")


REGISTERED = {}


def register(id, entry_point, kwargs=None, **others):
    """An environment of the program's own: `package.module:Class` or the class itself."""
    REGISTERED[id] = entry_point, kwargs or {}


def registered(name, others):
    made, keywords = REGISTERED[name]
    if isinstance(made, str):
        module, _, attribute = made.partition(":")
        made = getattr(importlib.import_module(module), attribute)
    return made(**{**keywords, **others})


def make(name, new, **others):
    if name in REGISTERED:
        return registered(name, others)
    if name in MAKERS:
        env = MAKERS[name]()
    elif name.rpartition("/")[2].startswith(SCREENS):
        env = Pictures()
    else:
        raise ValueError(
            f"the gym stand-in has no {name}; it has {', '.join(MAKERS)} and screens of {', '.join(SCREENS)}"
        )
    env.new = new
    env.spec = type("Spec", (), {"id": name, "max_episode_steps": env.limit, "reward_threshold": 195.0})()
    return env
