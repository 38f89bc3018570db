"""Calls of `train_on_batch`, `test_on_batch` and `predict_on_batch` by the user's line; their steps are functions'."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flatout.model.evidence.program import BATCH_METHODS
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.observe.single_batches import is_batch
from flatout.observe.ticks import KERAS
from flatout.source import users_code

MOST = 200


def on_keras(observer: Observer, module: ModuleType) -> None:
    for kind in ("train", "test", "predict"):
        _Lines(observer, f"{kind}_on_batch").install(f"{kind}-on-batch")


class _Lines:
    """The calls of one method: how many, seconds, batches, those that the cure serves, seconds of the first, values."""

    def __init__(self, observer: Observer, method: str) -> None:
        self.observer = observer
        self.method = method
        self.rows: dict[Any, list[Any]] = {}
        observer.hooks.at_flush.append(self.write)

    def write(self) -> None:
        rows = [[*place, *values] for place, values in list(self.rows.items())[:MOST]]
        if rows:
            self.observer.recorder.fact("keras-calls", method=self.method, rows=rows)

    def install(self, key: str) -> None:
        observer, thread = self.observer, self.observer.thread

        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def call(model: Any, *args: Any, **kwargs: Any) -> Any:
                if thread.busy & KERAS:  # in a callback of `fit`: no step of its own
                    return original(model, *args, **kwargs)
                start = observer.clock()
                result = original(model, *args, **kwargs)
                self.add(observer.clock() - start, model, args, kwargs, result)
                return result

            return call

        patch(key, wrap)

    def add(self, seconds: float, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        try:
            place = users_code.here(2)
            if place is None or self._is_cured():
                return
            row = self.rows.get(place)
            if row is None:
                row = self.rows[place] = [0, 0.0, 0, 0, seconds, _values(model, result)]
            row[0] += 1
            row[1] += seconds
            row[2] += 1
            row[3] += _is_plain(args, kwargs)
        except Exception as error:
            self.observer.note(f"calls of {self.method} are not counted: {type(error).__name__}: {error}")

    def _is_cured(self) -> bool:
        injections = self.observer.injections
        return self.method in BATCH_METHODS and injections is not None and "direct-batch" in injections.names


def _is_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call gives nothing but arrays."""
    named = [kwargs[name] for name in ("x", "y", "sample_weight") if name in kwargs]
    others = any(value for name, value in kwargs.items() if name not in ("x", "y", "sample_weight", "return_dict"))
    return len(args) <= 3 and not others and is_batch((*args, *named))


def _values(model: Any, result: Any) -> int:
    """Not of two values of a model with several outputs: which of them comes first is seen by their names only."""
    if isinstance(result, float):
        return 1
    outputs = getattr(model, "outputs", None) or ()
    return len(result) if isinstance(result, list) and (len(outputs) == 1 or len(result) > 2) else 0


PROBE = Probe("batch_calls", keras=on_keras)
