"""`free-compute` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.ticks import KERAS, TRACE
from flatout.observe.traced import any_in

REAL_STEPS = 3
"""Steps that are computed first: they trace the function and leave a result to give back."""


def on_keras(injection: Injection, module: ModuleType) -> None:
    _fit(injection, "make-train-function")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _fit(injection, "legacy-make-train-function")


def _fit(injection: Injection, key: str) -> None:
    def wrap(original: Any) -> Any:
        def make_train_function(self: Any, force: bool = False) -> Any:
            before = self.train_function
            result = original(self, force)
            if self.train_function is not before and not self.run_eagerly:
                self.train_function = _free(injection, self, self.train_function)
            return result if result is None or result is before else self.train_function

        return make_train_function

    patch(key, wrap)


def _free(injection: Injection, model: Any, real: Any) -> Any:
    calls = 0
    last: Any = None

    def train_function(iterator: Any) -> Any:
        nonlocal calls, last
        calls += 1
        if calls <= REAL_STEPS:
            last = real(iterator)
            return last
        steps = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None)
        for _ in range(int(steps or 1)):
            next(iterator)
        injection.changed("fit takes its input and computes nothing")
        return last

    return train_function


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    observer = injection.observer

    def wrap_call(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            trains = getattr(observer.shared.functions, "trains", {})
            if not eager() or observer.thread.busy & (TRACE | KERAS) or any_in(self, trains) is None:
                return original(self, *args, **kwargs)
            calls = self._flatout_calls = getattr(self, "_flatout_calls", 0) + 1
            if calls <= REAL_STEPS:
                self._flatout_last = original(self, *args, **kwargs)
                return self._flatout_last
            for value in (*args, *kwargs.values()):
                if hasattr(value, "element_spec") and hasattr(value, "__next__"):
                    next(value)
            injection.changed(f"{self._name} computes nothing")
            return self._flatout_last

        return __call__

    patch("function-call", wrap_call)


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
