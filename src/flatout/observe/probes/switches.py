"""Debugging and configuration switches that the program turns on, and the line that does it."""

from __future__ import annotations

import contextlib
import functools
from types import ModuleType
from typing import Any

from flatout.observe.imports import loaded
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import KERAS_SWITCHES, SWITCHES, Missing, patch, replace, resolve, wrapped
from flatout.source import users_code


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    for name in SWITCHES:
        with contextlib.suppress(Missing):  # what this TensorFlow lacks is not called
            patch(f"switch-{name}", functools.partial(_recorded, observer, f"tf.{name}"))


def on_keras(observer: Observer, module: ModuleType) -> None:
    for name in KERAS_SWITCHES:
        with contextlib.suppress(Missing):
            _, _, original = resolve(f"keras-switch-{name}")
            wrapper = wrapped(original, _recorded(observer, f"keras.{name}", original))
            # The same function is in many modules (`tf.keras` has a tree of its own): replace it in all of them.
            for holder in loaded():
                if str(getattr(holder, "__name__", "")).startswith("keras"):
                    for alias, value in list(vars(holder).items()):
                        if value is original:
                            replace(holder, alias, wrapper)


def _recorded(observer: Observer, label: str, original: Any) -> Any:
    def switch(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            given = [str(value)[:80] for value in args] + [f"{key}={str(v)[:80]}" for key, v in kwargs.items()]
            observer.recorder.fact("switch", name=label, given=given, where=users_code.here())
        return original(*args, **kwargs)

    return switch


PROBE = Probe("switches", tensorflow=on_tensorflow, keras=on_keras)
