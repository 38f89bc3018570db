"""`no-run-eagerly` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures import _frozen_here
from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import replace, resolve


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "compile", "run-eagerly-of-model")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-compile", "legacy-run-eagerly-of-model")


def _install(injection: Injection, compile_key: str, property_key: str) -> None:
    def is_free() -> bool:
        """Whether nothing in the program's own steps and layers needs to run as Python."""
        why = _frozen_here.keras()
        if why is not None:
            injection.note(f"the model stays eager: {why}")
        return why is None

    def in_compile(model: Any, arguments: Arguments) -> None:
        if arguments.get("run_eagerly") and is_free():
            arguments["run_eagerly"] = False
            injection.changed(f"run_eagerly taken back{caller_location()}")

    change_arguments(compile_key, in_compile)
    holder, name, was = resolve(property_key)

    def set_run_eagerly(model: Any, value: Any) -> None:
        free = bool(value) and is_free()
        if free:
            injection.changed(f"run_eagerly taken back{caller_location()}")
        was.fset(model, False if free else value)

    replace(holder, name, property(was.fget, set_run_eagerly, was.fdel, was.__doc__))


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
