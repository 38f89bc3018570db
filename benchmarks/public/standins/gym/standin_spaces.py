"""The spaces of the gym stand-in."""

import numpy as np


class Space:
    shape = ()
    dtype = np.dtype(np.float32)

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def seed(self, seed=None):
        self.rng = np.random.default_rng(seed)
        return [seed]


class Discrete(Space):
    dtype = np.dtype(np.int64)

    def __init__(self, n):
        super().__init__()
        self.n = int(n)

    def sample(self):
        return int(self.rng.integers(self.n))

    def contains(self, x):
        return 0 <= int(x) < self.n

    __contains__ = contains


class Box(Space):
    def __init__(self, low, high, shape=None, dtype=np.float32):
        super().__init__()
        self.shape = tuple(shape) if shape is not None else np.shape(low)
        self.dtype = np.dtype(dtype)
        self.low = np.broadcast_to(np.asarray(low, self.dtype), self.shape).copy()
        self.high = np.broadcast_to(np.asarray(high, self.dtype), self.shape).copy()

    def sample(self):
        low = np.clip(self.low.astype(np.float64), -1e3, 1e3)
        return self.rng.uniform(low, np.clip(self.high.astype(np.float64), -1e3, 1e3)).astype(self.dtype)

    def contains(self, x):
        return np.shape(x) == self.shape and bool(np.all(x >= self.low) and np.all(x <= self.high))

    __contains__ = contains


class MultiDiscrete(Space):
    dtype = np.dtype(np.int64)

    def __init__(self, nvec):
        super().__init__()
        self.nvec = np.asarray(nvec)
        self.shape = self.nvec.shape

    def sample(self):
        return self.rng.integers(self.nvec)


class Tuple(Space):
    def __init__(self, spaces):
        super().__init__()
        self.spaces = tuple(spaces)

    def sample(self):
        return tuple(space.sample() for space in self.spaces)


class Dict(Space):
    def __init__(self, spaces):
        super().__init__()
        self.spaces = dict(spaces)

    def sample(self):
        return {name: space.sample() for name, space in self.spaces.items()}
