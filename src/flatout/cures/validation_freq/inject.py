"""`validation-freq` in a running program: `fit` is given a `validation_freq`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.cures.validation_freq import every
from flatout.observe.injection import Injection


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-fit")


def _install(injection: Injection, key: str) -> None:
    def in_fit(model: Any, arguments: Arguments) -> None:
        if arguments.get("validation_data") is None and not arguments.get("validation_split"):
            return
        epochs = int(arguments.get("epochs", 1)) - int(arguments.get("initial_epoch", 0))
        wanted = min(every(injection.value), epochs)
        why = _why_not(arguments, wanted)
        if why:
            injection.note(f"validation stays as it is: {why}")
            return
        arguments["validation_freq"] = wanted
        injection.changed(f"fit validates every {wanted} epochs{caller_location()}")

    change_arguments(key, in_fit)


def _why_not(arguments: Arguments, wanted: int) -> str:
    given = arguments.get("validation_freq", 1)
    if given != 1:
        return "validation_freq is given"
    if wanted < 2:
        return "there is one epoch"
    if arguments.get("initial_epoch"):
        return "the training goes on from an earlier one"
    callbacks = arguments.get("callbacks") or ()
    for callback in getattr(callbacks, "callbacks", callbacks):  # a list, or a CallbackList
        monitored = str(getattr(callback, "monitor", "") or "")
        if monitored.startswith("val_") and getattr(callback, "save_best_only", True):
            return f"{type(callback).__name__} looks at {monitored} after each epoch"
    return ""


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
