"""`steps-per-execution` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments, stays_eager
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "compile")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-compile")


def _install(injection: Injection, key: str) -> None:
    steps = int(injection.value or 8)

    def in_compile(model: Any, arguments: Arguments) -> None:
        given = arguments.get("steps_per_execution")
        if stays_eager(injection, arguments) or given not in (None, 1):
            return
        arguments["steps_per_execution"] = steps
        injection.changed(f"{steps} steps per call{caller_location()}; callbacks for each batch come once per call")

    change_arguments(key, in_compile)


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
