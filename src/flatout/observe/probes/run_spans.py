"""Spans of the run: Keras' `fit`, `evaluate` and `predict`, hooks of callbacks and sessions, checkpoints, summaries.

Each is entered some thousand times in a run at most, but for the hooks of batches: there only what a class overrides is
timed, in the class itself. No callback is added to a list, and none is taken for one that overrides a hook it does not.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, cast

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import SUMMARIES, Missing, patch, wrapped
from flatout.observe.program_classes import replace_method
from flatout.observe.spans import Key, Spans
from flatout.source import users_code

HOOKS = tuple(
    f"on_{name}_{edge}"
    for name in ("epoch", "train", "test", "predict", "batch", "train_batch", "test_batch", "predict_batch")
    for edge in ("begin", "end")
)
SESSION_HOOKS = ("after_create_session", "before_run", "after_run", "end")
"""Of TF1's `MonitoredSession`. Those that TensorFlow brings along write checkpoints and summaries, which are timed
themselves; the others are the program's own."""
CHEAP = ("Callback", "CallbackList", "History", "ProgbarLogger", "BaseLogger")
"""Classes of Keras that are in nearly every list and cost microseconds: timing them would cost as much."""
CALLS = {"fit": "fit", "evaluate": "validation", "predict": "prediction"}
CHECKPOINTS = (
    *(f"checkpoint-{holder}-{name}" for holder in ("Checkpoint", "CheckpointV1") for name in ("write", "save")),
    *("checkpoint-manager", "saved-model", "saver-save"),
)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    if not observer.spans.active:
        return
    for key in CHECKPOINTS:
        _span(observer.spans, key, "checkpoint")
    for key in (*(f"summary-{name}" for name in SUMMARIES), "summary-of-tf1"):
        _span(observer.spans, key, "summary")
    with contextlib.suppress(Missing):
        patch("monitored-session", functools.partial(_wrap_session, observer.spans))


def on_keras(observer: Observer, module: ModuleType) -> None:
    _on_any_keras(observer, "")


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    _on_any_keras(observer, "legacy-")


def _on_any_keras(observer: Observer, prefix: str) -> None:
    spans = observer.spans
    if not spans.active:
        return
    for name, kind in CALLS.items():
        _call(spans, f"{prefix}{name}", name, kind)
    for name in ("save", "save_weights", "export"):
        _span(spans, f"{prefix}model-{name}", "checkpoint")
    _epochs(spans, prefix)
    patch(f"{prefix}callback-list", functools.partial(_wrap_list, spans))


def _span(spans: Spans, key: str, kind: str) -> None:
    """Time what a name does, where it is not inside another of the same kind."""

    def wrap(original: Any) -> Any:
        name = str(getattr(original, "__qualname__", key))

        def call(*args: Any, **kwargs: Any) -> Any:
            if not spans.here or spans.within(kind) or spans.within("tracing"):
                return original(*args, **kwargs)
            file, line, _ = users_code.here() or ("", 0, "")
            depth = spans.enter(Key(kind, name, file, line))
            try:
                return original(*args, **kwargs)
            finally:
                spans.leave(depth)

        return call

    with contextlib.suppress(Missing):  # a name of one release; the others are seen all the same
        patch(key, wrap)


def _call(spans: Spans, key: str, name: str, kind: str) -> None:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not spans.here or spans.is_in("tracing"):
                return original(self, *args, **kwargs)
            file, line, _ = users_code.here() or ("", 0, "")
            spans.leave_if("steps", "epoch-start")  # validation inside of `fit`: the epoch's steps are over
            depth = spans.enter(Key(kind, name, file, line))
            if kind == "fit":
                spans.enter(Key("prepare", name, file, line))
            try:
                return original(self, *args, **kwargs)
            finally:
                spans.leave(depth)

        return call

    patch(key, wrap)


def _epochs(spans: Spans, prefix: str) -> None:
    def wrap_begin(original: Any) -> Any:
        def on_epoch_begin(self: Any, epoch: Any, logs: Any = None) -> Any:
            if not spans.here:
                return original(self, epoch, logs)
            spans.leave_if("prepare", "steps", "epoch-start")
            result = original(self, epoch, logs)
            if spans.is_in("fit"):
                key = spans.current.key
                spans.enter(Key("epoch-start", "fit", key.file, key.line))
                spans.awaits_batch = True
            return result

        return on_epoch_begin

    def wrap_end(original: Any) -> Any:
        def on_epoch_end(self: Any, epoch: Any, logs: Any = None) -> Any:
            if spans.here:
                spans.awaits_batch = False
                spans.leave_if("steps", "epoch-start")
            return original(self, epoch, logs)

        return on_epoch_end

    patch(f"{prefix}epoch-begin", wrap_begin)
    patch(f"{prefix}epoch-end", wrap_end)


# ── callbacks ────────────────────────────────────────────────────────────────────────────────────────────────────


def _wrap_list(spans: Spans, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if spans.here:
            for callback in list(getattr(self, "callbacks", ())):
                with contextlib.suppress(Exception):  # whatever a program gives as a callback
                    _time_hooks(spans, callback)

    return __init__


def _wrap_session(spans: Spans, original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, session_creator: Any, hooks: Any, *args: Any, **kwargs: Any) -> None:
        if spans.here:
            for hook in hooks if isinstance(hooks, (list, tuple)) else ():
                with contextlib.suppress(Exception):  # whatever a program gives as a hook
                    _time_session_hook(spans, hook)
        original(self, session_creator, hooks, *args, **kwargs)

    return __init__


def _time_session_hook(spans: Spans, hook: Any) -> None:
    for holder in type(hook).__mro__:
        for name in SESSION_HOOKS:
            function = vars(holder).get(name)
            if not isinstance(function, FunctionType) or hasattr(function, "_flatout_timed"):
                continue
            if users_code.is_users(function.__code__):
                timed = _timed(spans, function, Key("callback", f"{holder.__name__}.{name}", *_place(function)))
                replace_method(holder, name, wrapped(function, timed))


def _time_hooks(spans: Spans, callback: Any) -> None:
    kind = "summary" if type(callback).__name__ == "TensorBoard" else "callback"
    for holder in type(callback).__mro__:
        if holder is object or holder.__name__ in CHEAP:
            continue
        for hook in HOOKS:
            function = vars(holder).get(hook)
            if isinstance(function, FunctionType) and not hasattr(function, "_flatout_timed"):
                timed = _timed(spans, function, Key(kind, f"{holder.__name__}.{hook}", *_place(function)))
                replace_method(holder, hook, wrapped(function, timed))
    for hook in HOOKS:  # LambdaCallback keeps functions in the object
        function = getattr(callback, "__dict__", {}).get(hook)
        if callable(function) and not hasattr(function, "_flatout_timed"):
            key = Key(kind, f"{type(callback).__name__}.{hook}", *_place(function))
            setattr(callback, hook, wrapped(function, _OfObject(function, _timed(spans, function, key))))


class _Timing:
    """What a hook is timed by. None in a pickle of the hook: cloudpickle sends classes of the main program by value, to
    processes where nothing is observed."""

    __slots__ = ("key", "spans")

    def __init__(self, spans: Spans, key: Key) -> None:
        self.spans = spans
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class _OfObject:
    """A timed function that is kept in an object. A copy or a pickle of the object has the function itself: a function
    of a module is pickled by its name, under which pickle would not find a timed one."""

    def __init__(self, function: Callable[..., Any], timed: Callable[..., Any]) -> None:
        self.__dict__.update(timed.__dict__)
        self._function = function
        self._timed = timed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._timed(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return cast, (None, self._function)  # of the standard library: flatout may not be there


def _timed(spans: Spans, function: Callable[..., Any], key: Key) -> Callable[..., Any]:
    timing: _Timing | None = _Timing(spans, key)

    def hook(*args: Any, **kwargs: Any) -> Any:
        if timing is None or not timing.spans.here or timing.spans.current.key == timing.key:
            return function(*args, **kwargs)
        spans = timing.spans
        depth = spans.enter(timing.key)
        try:
            return function(*args, **kwargs)
        finally:
            spans.leave(depth)

    hook.__dict__.update(getattr(function, "__dict__", {}))  # `_is_default`, and what decorators have left
    hook._flatout_timed = True  # type: ignore[attr-defined]
    return hook


def _place(function: Any) -> tuple[str, int]:
    """Where it is defined; nowhere for a hook of a library."""
    code = getattr(function, "__code__", None)
    if code is None or not users_code.is_users(code):
        return "", 0
    return users_code.absolute(code.co_filename), code.co_firstlineno


PROBE = Probe("run_spans", tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
