"""`no-xla` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "compile")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "legacy-compile")


def _compile(injection: Injection, key: str) -> None:
    def in_compile(model: Any, arguments: Arguments) -> None:
        if arguments.get("jit_compile", "auto") in (True, "auto"):
            asked = "jit_compile" in arguments
            arguments["jit_compile"] = False
            if asked:
                injection.changed(f"jit_compile taken back{caller_location()}")

    change_arguments(key, in_compile)


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def wrap_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            # Read when the function is first called, so that it is in time here.
            if self._jit_compile:
                self._jit_compile = None
                injection.changed(f"{self._name} runs as a plain graph")

        return __init__

    patch("function-init", wrap_init)


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
