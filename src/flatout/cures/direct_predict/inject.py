"""`direct-predict` in a running program."""

from __future__ import annotations

import functools
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._one_batch import PROGRESS, Excluded, as_floatx
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.single_batches import Signature
from flatout.observe.ticks import KERAS
from flatout.source import users_code


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "predict")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-predict")


def _install(injection: Injection, key: str) -> None:
    excluded = Excluded(injection, "predict")

    def wrap(original: Any) -> Any:
        signature = Signature("predict", original)

        @functools.wraps(original)
        def predict(self: Any, *args: Any, **kwargs: Any) -> Any:
            asked = signature.single_batch(self, args, kwargs) if _is_ready(self) and self not in excluded else None
            if asked is None:
                return original(self, *args, **kwargs)
            start = perf_counter()
            try:
                result = self.predict_on_batch(as_floatx(asked.x))
            except Exception as error:  # the program's own error comes again, from where it comes without the lever
                excluded.add(self, error)
                return original(self, *args, **kwargs)
            _tick(injection, start)
            injection.changed(f"predict on a few rows goes straight to the model{caller_location()}")
            if asked.shown:
                injection.note(PROGRESS)
            return result

        return predict

    patch(key, wrap)


def _is_ready(model: Any) -> bool:
    if not getattr(model, "built", False) or getattr(model, "run_eagerly", False):
        return False
    methods = (getattr(type(model), name, None) for name in ("predict_on_batch", "predict_step"))
    codes = (getattr(method, "__code__", None) for method in methods)
    if any(code is not None and users_code.is_users(code) for code in codes):
        return False  # it may do something else than `predict`; a step gets a tuple from one, arrays from the other
    return int(getattr(model, "_steps_per_execution", None) or 1) == 1  # tf_keras would look for as many batches


def _tick(injection: Injection, start: float) -> None:
    """A call is a step, as a batch of `predict` was: the callbacks that would tell so are left out."""
    observer = injection.observer
    inside = bool(observer.thread.busy & KERAS)  # in a callback of `fit`
    key, facts = (("predict", "inside"), {"inside": True}) if inside else ("predict", {})
    stream = observer.streams.get(key)
    if stream is None:
        stream = observer.streams.make("predict", key, "predict", **facts)
    observer.ticks.tick(stream, start, perf_counter())


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
