"""Nothing is computed: the input alone runs, to show how fast the steps could be at best.

## What it does
After the first few steps a call of the training function gives back its last result at once. The input is still
taken from the pipeline. Eager steps are not touched.

## When it pays
Never by itself: it is a bound. When steps without computing take as long as with it, the input is what to cure,
and no lever on computing can help.

## What it changes
Bound: the weights stand still.

## In the source
There is no edit.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.model import queries as reading
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection
from flatout.observe.observer import KERAS, TRACE
from flatout.observe.private_names import patch

EQUIVALENCE: Equivalence = "bound"
SIDE = "compute"
CONFLICTS = ("function",)

REAL_STEPS = 3
"""Steps that are computed first: they trace the function and leave a result to give back."""


def skip(case: Case) -> str | None:
    kind = reading.step_kind(case)
    if kind == "fit":
        return "the model runs eagerly" if reading.step_fact(case, "run_eagerly") else None
    return None if kind == "train-function" else "the steps are not those of a traced function that trains"


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
            trains = getattr(observer.functions, "trains", {})
            if not eager() or observer.thread.busy & (TRACE | KERAS) or id(self._function_cache) not in trains:
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
