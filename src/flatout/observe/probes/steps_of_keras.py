"""Steps of Keras `fit`, `evaluate` and `predict`, found at the callback list.

No Callback is added: overriding `on_train_batch_end` would switch off Keras' asynchronous dispatch and so change what
is measured. The list's own methods are wrapped instead.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from time import perf_counter
from types import ModuleType
from typing import Any, NamedTuple

from flatout.model.vocabulary import StreamKind
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, patch
from flatout.observe.single_batches import Signature
from flatout.observe.streams import Stream
from flatout.observe.ticks import KERAS
from flatout.source import users_code


def on_keras(observer: Observer, module: ModuleType) -> None:
    names: tuple[StreamKind, ...] = ("fit", "predict", "evaluate")
    outermost = _Outermost()
    for name in names:
        batches = _Batches(observer, name)
        patch(f"{name}-end", batches.wrap_end)
        _each_call(observer, name, name, batches, outermost)
        if name == "fit":
            _epochs(observer, "epoch-begin", batches)
    _compile(observer, "compile")


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    names: tuple[StreamKind, ...] = ("fit", "predict")
    outermost = _Outermost()
    for name in names:
        batches = _Batches(observer, name)
        patch(f"legacy-{name}-end", batches.wrap_end)
        _each_call(observer, name, f"legacy-{name}", batches, outermost)
        if name == "fit":
            _epochs(observer, "legacy-epoch-begin", batches)
    _compile(observer, "legacy-compile")


class _Batches:
    """The batches of one kind of call. Only their ends are hooked: each hook costs a short step some percent.

    A batch begins with the call of the function that Keras has made for it; without one, where the last has ended.
    """

    def __init__(self, observer: Observer, kind: StreamKind) -> None:
        self.observer = observer
        self.kind = kind
        self.ended = perf_counter()
        self.number: int | None = None
        """The last one's, inside a call of Keras' own. In a loop of the user's that calls a callback list by itself,
        the numbers are anybody's, and each call is a batch."""
        self.inside = False
        """Whether the call was made by another call of Keras: the validation of `fit`."""

    def begin(self) -> None:
        """A call or an epoch of Keras begins; its first batch comes."""
        self.number, self.ended = -1, perf_counter()

    def end(self) -> None:
        self.number, self.inside = None, False

    def wrap_end(self, original: Any) -> Any:
        ticks, streams, kind = self.observer.ticks, self.observer.streams, self.kind
        spans = self.observer.spans
        own: list[Stream | None] = [None, None]

        def end(callbacks: Any, batch: Any, logs: Any = None) -> Any:
            result = original(callbacks, batch, logs)
            inside = self.inside
            stream = own[inside]
            if stream is None:
                key, facts = ((kind, "inside"), {"inside": True}) if inside else (kind, {})
                stream = streams.get(key) or streams.make(kind, key, kind, **facts, **_model_facts(callbacks))
                own[inside] = stream
            n = 1
            if self.number is not None and isinstance(batch, int):
                # With `steps_per_execution` a call is several batches, and the number is that of the last.
                n, self.number = max(batch - self.number, 1), batch
            before, self.ended = self.ended, perf_counter()
            called = ticks.called
            ticks.tick(stream, called if called > before else before, self.ended, n)
            if spans.awaits_batch:
                spans.first_batch()
            return result

        return end


def _model_facts(callbacks: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    model: Any = None
    with contextlib.suppress(Exception):  # of whatever a program gives in the place of a model
        model = getattr(callbacks, "model", None) or getattr(callbacks, "_model", None)
    for name in ("run_eagerly", "steps_per_execution", "jit_compile"):
        with contextlib.suppress(Exception):
            value = getattr(model, name, None)
            if value is None:
                value = getattr(model, f"_{name}", None)
            facts[name] = int(value) if name == "steps_per_execution" and value is not None else value
    with contextlib.suppress(Exception):
        facts["policy"] = str(model.dtype_policy.name)
    return facts


def _epochs(observer: Observer, key: str, batches: _Batches) -> None:
    def wrap(original: Any) -> Any:
        def on_epoch_begin(self: Any, epoch: Any, logs: Any = None) -> Any:
            observer.recorder.fact("epoch", number=epoch, at=perf_counter())
            result = original(self, epoch, logs)
            if batches.number is not None:
                batches.begin()
            return result

        return on_epoch_begin

    patch(key, wrap)


class _Calls:
    """Calls of one Keras method, counted by the user's line."""

    def __init__(self, observer: Observer, method: str) -> None:
        self.observer = observer
        self.method = method
        self.rows: dict[Any, list[float]] = {}
        """Calls, their seconds, batches, those for one batch, seconds of the first, a place that methods for one batch
        use, epochs, calls for a few batches, those with callbacks, when the first began and when the last ended."""
        self.running: tuple[Any, float, int, Callable[[], _Asked]] | None = None
        """The call that has not returned: its place, its start, the batches before it, what it asked for."""
        observer.hooks.at_flush.append(self.write)

    def batches(self) -> int:
        """So far, in the calls of the program and in those of its callbacks."""
        streams = map(self.observer.streams.get, (self.method, (self.method, "inside")))
        return sum(stream.count for stream in streams if stream is not None)

    def add(
        self, rows: dict[Any, list[float]], place: Any, elapsed: float, batches: int, asked: Callable[[], _Asked]
    ) -> None:
        now = perf_counter()
        row = rows.setdefault(place, [0, 0.0, 0, 0, elapsed, 0, 0, 0, 0, now - elapsed, now])
        row[0] += 1
        row[1] += elapsed
        row[2] += self.batches() - batches
        epochs, few, apart = asked()
        row[3] += epochs > 0
        row[6] += epochs
        row[7] += few
        row[8] += apart
        row[10] = now

    def write(self) -> None:
        found = {place: list(values) for place, values in list(self.rows.items())}
        if (running := self.running) is not None:  # an observation may end in the midst of a long fit
            place, start, batches, asked = running
            if not (_is_cured(self.observer, self.method) and asked().is_cured):
                self.add(found, place, self.observer.clock() - start, batches, asked)
        rows = [[*place, *values] for place, values in list(found.items())[:200]]
        if rows:
            self.observer.recorder.fact("keras-calls", method=self.method, rows=rows)


class _Outermost:
    """The call of Keras that is under way and that no other has made."""

    place: Any = None


def _each_call(observer: Observer, method: str, key: str, steps: _Batches, outermost: _Outermost) -> None:
    calls = _Calls(observer, method)
    thread = observer.thread

    def wrap(original: Any) -> Any:
        signature = Signature(method, original)

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            busy = thread.busy
            steps.begin()
            place = users_code.here()
            if busy & KERAS:
                steps.inside = True
                by_callback = place not in (None, outermost.place)  # else it is the validation of `fit`
                if by_callback:
                    observer.look()
                start, batches = observer.clock(), calls.batches()
                try:
                    return original(self, *args, **kwargs)
                finally:
                    steps.end()
                    if by_callback:
                        count(self, place, start, batches, args, kwargs)
            place = outermost.place = place or ("", 0, "")
            observer.look()
            thread.busy = busy | KERAS
            start, batches = observer.clock(), calls.batches()
            calls.running = (place, start, batches, lambda: _asked(signature, self, args, kwargs))
            try:
                return original(self, *args, **kwargs)
            finally:
                thread.busy = busy
                steps.end()
                calls.running = None
                count(self, place, start, batches, args, kwargs)

        def count(model: Any, place: Any, start: float, batches: int, args: Any, kwargs: Any) -> None:
            elapsed = observer.clock() - start
            asked = _asked(signature, model, args, kwargs)
            observer.look()
            if not (asked.is_cured and _is_cured(observer, method)):
                calls.add(calls.rows, place, elapsed, batches, lambda: asked)

        return call

    patch(key, wrap)


class _Asked(NamedTuple):
    """What a call asked for."""

    epochs: int = 0
    """Of a single batch of arrays; 0 where it is something else."""
    few: bool = False
    apart: bool = False

    @property
    def is_cured(self) -> bool:
        """Whether a lever for single batches serves it."""
        return bool(self.epochs) or self.few


def _asked(signature: Signature, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Asked:
    with contextlib.suppress(Exception):
        asked = signature.few_batches(model, args, kwargs)
        if asked is None:
            without = {name: value for name, value in kwargs.items() if name != "callbacks"}
            return _Asked(apart=len(without) < len(kwargs) and bool(signature.single_batch(model, args, without)))
        is_single = asked.batches == 1 or signature.method == "predict"
        return _Asked(epochs=asked.epochs) if is_single else _Asked(few=True)
    return _Asked()


def _is_cured(observer: Observer, method: str) -> bool:
    """Whether a lever serves calls for single batches: then they are no fault of the program any longer."""
    lever = "direct-predict" if method == "predict" else "direct-fit"
    return observer.injections is not None and lever in observer.injections.names


def _compile(observer: Observer, key: str) -> None:
    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                observer.trial.compiled = True
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


PROBE = Probe("steps_of_keras", keras=on_keras, tf_keras=on_tf_keras)
