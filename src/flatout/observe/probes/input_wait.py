"""How long the program waits for its input when it iterates a dataset in Python."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.observe.streams import Stream
from flatout.observe.ticks import TRACE


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    thread, ticks = observer.thread, observer.ticks
    stream: Stream | None = None

    def wrap(original: Any) -> Any:
        def get_next(self: Any) -> Any:
            nonlocal stream
            busy = thread.busy
            if busy & TRACE:
                return original(self)
            start = perf_counter()
            try:
                return original(self)
            finally:
                end = perf_counter()
                ticks.input += end - start
                if not busy:
                    if stream is None:
                        stream = observer.streams.make("input", "input", "dataset")
                    ticks.tick(stream, start, end)

        return get_next

    patch("iterator-next", wrap)
    patch("iterator-optional", wrap)


PROBE = Probe("input_wait", tensorflow=on_tensorflow)
