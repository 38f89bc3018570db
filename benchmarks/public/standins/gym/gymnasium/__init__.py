"""Stands in for gymnasium: the environments of standin_environments.py."""

import standin_environments
import standin_spaces as spaces
from standin_environments import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper
from standin_spaces import Space

__version__ = "1.0.0"
__all__ = ["ActionWrapper", "Env", "ObservationWrapper", "RewardWrapper", "Space", "Wrapper", "make", "spaces"]


def make(name, *arguments, **others):
    return standin_environments.make(name, True, **others)
