"""Recurrent layers of Keras: the line that makes them, and how long the sequences are that they go through."""

from __future__ import annotations

import contextlib
import functools
import weakref
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.source import users_code

MOST = 200


def on_keras(observer: Observer, module: ModuleType) -> None:
    made: weakref.WeakKeyDictionary[Any, users_code.Location] = weakref.WeakKeyDictionary()
    rows: dict[tuple[Any, ...], set[int | None]] = {}

    def wrap_init(original: Any) -> Any:
        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            with contextlib.suppress(Exception):
                where = users_code.here()
                if where is not None:
                    made[self] = where

        return __init__

    def wrap_call(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, sequences: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                where = made.get(self)
                if where is not None and len(rows) < MOST:
                    key = (*where, type(self).__name__, str(self.name), bool(self.unroll))
                    mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
                    # Keras zeroes the wrong outputs of a masked layer that goes backwards once it is unrolled.
                    unfit = mask is not None and self.go_backwards
                    rows.setdefault(key, set()).add(None if unfit else sequences.shape[1])
            return original(self, sequences, *args, **kwargs)

        return call

    def write() -> None:
        if rows:
            found = [[*key, _longest(lengths)] for key, lengths in rows.items()]
            observer.recorder.fact("recurrent-layers", rows=found)

    patch("rnn-init", wrap_init)
    patch("rnn-call", wrap_call)
    observer.hooks.at_flush.append(write)


def _longest(lengths: set[int | None]) -> int | None:
    """None where one of them is not known when the layer is called."""
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None


PROBE = Probe("recurrent_layers", keras=on_keras)
