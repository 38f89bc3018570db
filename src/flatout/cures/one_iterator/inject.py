"""`one-iterator` in a running program: `fit` is given a dataset that repeats, and how many steps an epoch has."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-fit")


def _install(injection: Injection, key: str) -> None:
    def in_fit(model: Any, arguments: Arguments) -> None:
        import tensorflow as tf

        data, epochs = arguments.get("x"), arguments.get("epochs", 1)
        if not isinstance(data, tf.data.Dataset) or arguments.get("steps_per_epoch") is not None:
            return
        steps = int(data.cardinality())
        if steps <= 0 or epochs - arguments.get("initial_epoch", 0) < 2 or tf.distribute.has_strategy():
            injection.note("a fit of one epoch, or on a dataset of unknown length, stays as it is")
            return
        arguments["x"], arguments["steps_per_epoch"] = data.repeat(), steps
        injection.changed(f"fit has one iterator for {epochs} epochs of {steps} steps{caller_location()}")

    change_arguments(key, in_fit)


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
