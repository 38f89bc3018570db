"""Steps of Keras `fit`, `evaluate` and `predict`, found at the callback list.

No Callback is added: overriding `on_train_batch_end` would switch off Keras' asynchronous dispatch and so change what
is measured. The list's own methods are wrapped instead.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe import users_code
from flatout.observe.observer import KERAS, Observer
from flatout.observe.private_names import Missing, patch


def on_keras(observer: Observer, module: ModuleType) -> None:
    _batches(observer, "fit", "fit-begin", "fit-end")
    _batches(observer, "predict", "predict-begin", "predict-end")
    _batches(observer, "evaluate", "evaluate-begin", "evaluate-end")
    _epochs(observer, "epoch-begin")
    for name in ("fit", "predict", "evaluate"):
        _outer_call(observer, name, name)
    _compile(observer, "compile")


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    _batches(observer, "fit", "legacy-fit-begin", "legacy-fit-end")
    _batches(observer, "predict", "legacy-predict-begin", "legacy-predict-end")
    _epochs(observer, "legacy-epoch-begin")
    for name in ("fit", "predict"):
        _outer_call(observer, name, f"legacy-{name}")
    _compile(observer, "legacy-compile")


class _Running:
    """The batch under way of one kind."""

    start = 0.0
    first = 0
    place: Any = None


def _batches(observer: Observer, kind: str, begin_key: str, end_key: str) -> None:
    running = _Running()

    def wrap_begin(original: Any) -> Any:
        def begin(self: Any, batch: Any, logs: Any = None) -> Any:
            running.start = perf_counter()
            running.first = batch
            return original(self, batch, logs)

        return begin

    def wrap_end(original: Any) -> Any:
        def end(self: Any, batch: Any, logs: Any = None) -> Any:
            result = original(self, batch, logs)
            stream = observer.streams.get(kind)
            if stream is None:
                stream = observer.stream(kind, kind, kind, **_model_facts(self))
            now = perf_counter()
            n = batch - running.first + 1 if isinstance(batch, int) and isinstance(running.first, int) else 1
            observer.tick(stream, running.start, now, max(n, 1))
            return result

        return end

    patch(begin_key, wrap_begin)
    patch(end_key, wrap_end)


def _model_facts(callbacks: Any) -> dict[str, Any]:
    model: Any = getattr(callbacks, "model", None) or getattr(callbacks, "_model", None)
    facts: dict[str, Any] = {}
    for name in ("run_eagerly", "steps_per_execution", "jit_compile"):
        value = getattr(model, name, None)
        if value is None:
            value = getattr(model, f"_{name}", None)
        with contextlib.suppress(Exception):
            facts[name] = int(value) if name == "steps_per_execution" and value is not None else value
    with contextlib.suppress(Exception):
        facts["policy"] = str(model.dtype_policy.name)
    return facts


def _epochs(observer: Observer, key: str) -> None:
    def wrap(original: Any) -> Any:
        def on_epoch_begin(self: Any, epoch: Any, logs: Any = None) -> Any:
            observer.recorder.fact("epoch", number=epoch, at=perf_counter())
            return original(self, epoch, logs)

        return on_epoch_begin

    patch(key, wrap)


class _Calls:
    """Calls of one Keras method, counted by the user's line."""

    def __init__(self, observer: Observer, method: str) -> None:
        self.observer = observer
        self.method = method
        self.rows: dict[Any, list[float]] = {}
        observer.at_flush.append(self.write)

    def write(self) -> None:
        rows = [[*place, *values] for place, values in list(self.rows.items())[:200]]
        if rows:
            self.observer.recorder.fact("keras-calls", method=self.method, rows=rows)


def _outer_call(observer: Observer, method: str, key: str) -> None:
    calls = _Calls(observer, method)
    thread = observer.thread

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            busy = thread.busy
            if busy & KERAS:  # evaluate inside fit
                return original(self, *args, **kwargs)
            place = users_code.here() or ("", 0, "")
            stream = observer.streams.get(method)
            batches = stream.count if stream else 0
            thread.busy = busy | KERAS
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                thread.busy = busy
                row = calls.rows.setdefault(place, [0, 0.0, 0])
                row[0] += 1
                row[1] += perf_counter() - start
                stream = observer.streams.get(method)
                row[2] += (stream.count if stream else 0) - batches

        return call

    patch(key, wrap)


def _compile(observer: Observer, key: str) -> None:
    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                given = signature.bind(self, *args, **kwargs).arguments
                observer.recorder.fact(
                    "compile",
                    where=users_code.here(),
                    run_eagerly=given.get("run_eagerly"),
                    steps_per_execution=_plain(given.get("steps_per_execution")),
                    jit_compile=given.get("jit_compile"),
                )
            return original(self, *args, **kwargs)

        return compile

    with contextlib.suppress(Missing):
        patch(key, wrap)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str, type(None))) else str(value)
