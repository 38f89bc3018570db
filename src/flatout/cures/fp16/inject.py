"""`fp16` in a running program."""

from __future__ import annotations

from types import ModuleType

from flatout.cures import _dtype_policy
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection

POLICY = "mixed_float16"


def on_keras(injection: Injection, module: ModuleType) -> None:
    _dtype_policy.compute_in(injection, POLICY)


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _dtype_policy.compute_in_legacy(injection, POLICY)


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
