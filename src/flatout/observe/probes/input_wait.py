"""How long the program waits for its input when it iterates a dataset in Python."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe.observer import TRACE, Observer
from flatout.observe.private_names import patch


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    thread = observer.thread

    def wrap(original: Any) -> Any:
        def get_next(self: Any) -> Any:
            busy = thread.busy
            if busy & TRACE or not eager():
                return original(self)
            start = perf_counter()
            try:
                return original(self)
            finally:
                end = perf_counter()
                observer.input += end - start
                if not busy:
                    observer.tick(
                        observer.streams.get("input") or observer.stream("input", "input", "dataset"), start, end
                    )

        return get_next

    patch("iterator-next", wrap)
    patch("iterator-optional", wrap)
