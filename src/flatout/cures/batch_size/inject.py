"""`batch-size` in a running program."""

from __future__ import annotations

from types import ModuleType

from flatout.cures import _batch_size
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    _batch_size.resize_datasets(injection, lambda size: size * _factor(injection))


def on_keras(injection: Injection, module: ModuleType) -> None:
    _batch_size.resize_arrays(injection, "fit", lambda size: size * _factor(injection))


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _batch_size.resize_arrays(injection, "legacy-fit", lambda size: size * _factor(injection))


def _factor(injection: Injection) -> int:
    return max(int(injection.value or 2), 1)


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
