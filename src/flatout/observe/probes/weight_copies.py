"""Weights that the program reads, sets and assigns eagerly, line by line."""

from __future__ import annotations

import sys
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.model.vocabulary import EagerKind
from flatout.observe.eager_lines import EagerLines
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, patch
from flatout.source import users_code


def on_keras(observer: Observer, module: ModuleType) -> None:
    _count(observer, "get-weights", "get-weights")
    _count(observer, "set-weights", "set-weights")
    _count(observer, "keras-assign", "assign")


def _count(observer: Observer, key: str, kind: EagerKind) -> None:
    from tensorflow.python.eager import context

    lines, thread, eager = EagerLines(observer, kind), observer.thread, context.executing_eagerly

    def wrap(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            # What Keras itself assigns, an optimizer or `set_weights`, is part of something else.
            if not users_code.is_users(frame.f_code) or thread.busy or thread.apply or not eager():
                return original(self, *args, **kwargs)
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                lines.add(frame, perf_counter() - start)

        return call

    try:
        patch(key, wrap)
    except Missing:
        observer.note(f"{key} is missing")


PROBE = Probe("weight_copies", keras=on_keras)
