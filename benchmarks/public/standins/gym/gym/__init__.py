"""Stands in for gym: the environments of standin_environments.py."""

import os

import standin_environments
import standin_spaces as spaces
from standin_environments import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper, register
from standin_spaces import Space

__version__ = "0.21.0"
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
    return standin_environments.make(name, os.environ.get("GYM_API") == "new", **others)
