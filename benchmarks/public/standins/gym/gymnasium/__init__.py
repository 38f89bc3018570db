"""Stands in for gymnasium: the environments of standin_environments.py."""

import standin_environments
import standin_spaces as spaces
from standin_environments import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper, register
from standin_spaces import Space

__version__ = "1.0.0"
__all__ = [
    "ActionWrapper",
    "Env",
    "ObservationWrapper",
    "RewardWrapper",
    "Space",
    "Wrapper",
    "make",
    "register",
    "spaces",
]


def make(name, *arguments, **others):
    return standin_environments.make(name, True, **others)
