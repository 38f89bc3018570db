"""`steps-per-execution` in a running program."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from flatout.cures._frozen import BATCH_METHODS
from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments, stays_eager
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.source import users_code


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "compile", "fit")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-compile", "legacy-fit")


def _install(injection: Injection, key: str, fit_key: str) -> None:
    set_on: dict[int, tuple[Any, str]] = {}
    """The models, and what was recorded of them."""
    steps = int(injection.value or 8)

    def in_compile(model: Any, arguments: Arguments) -> None:
        given = arguments.get("steps_per_execution")
        if stays_eager(injection, arguments) or given not in (None, 1):
            return
        arguments["steps_per_execution"] = steps
        what = f"{steps} steps per call{caller_location()}; callbacks for each batch come once per call"
        set_on[id(model)] = (model, what)
        injection.changed(what)

    def in_fit(model: Any, arguments: Arguments) -> None:
        name = batch_callback(arguments.get("callbacks"))
        if name and id(model) in set_on:
            _one_at_a_time(model)
            injection.take_back(set_on.pop(id(model))[1], f"one step per call: {name} acts on each batch")

    change_arguments(key, in_compile)
    change_arguments(fit_key, in_fit)


def batch_callback(callbacks: Any) -> str:
    """A method of the program's own callbacks that Keras calls for each batch; empty where there is none."""
    for callback in _each(callbacks):
        for name in BATCH_METHODS:
            method = getattr(callback, name, None)
            code = getattr(getattr(method, "__func__", method), "__code__", None)
            if code is not None and users_code.is_users(code):
                return (
                    f"{type(callback).__name__}.{name} ({users_code.absolute(code.co_filename)}:{code.co_firstlineno})"
                )
    return ""


def _each(callbacks: Any) -> Iterator[Any]:
    """Those of lists in lists, and of a `CallbackList`."""
    if isinstance(callbacks, (list, tuple)):
        for callback in callbacks:
            yield from _each(callback)
        return
    yield callbacks
    held = getattr(callbacks, "callbacks", None)
    if isinstance(held, (list, tuple)):
        yield from _each(held)


def _one_at_a_time(model: Any) -> None:
    counter: Any = getattr(model, "_steps_per_execution", None)  # of tf_keras
    if hasattr(counter, "assign"):
        counter.assign(1)
    else:
        model.steps_per_execution = 1
    model.train_function = None  # made anew by `fit`


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
