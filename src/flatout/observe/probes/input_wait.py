"""How long the program waits for its input when it iterates a dataset in Python."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.observe.spans import Key, Spans
from flatout.observe.streams import Stream
from flatout.observe.ticks import TRACE
from flatout.source import users_code


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    thread, ticks, spans = observer.thread, observer.ticks, observer.spans
    stream: Stream | None = None

    def wrap(original: Any) -> Any:
        def get_next(self: Any) -> Any:
            nonlocal stream
            busy = thread.busy
            if busy & TRACE:
                return original(self)
            depth = _begin(spans, self) if spans.fresh is not None else None
            start = perf_counter()
            try:
                return original(self)
            finally:
                end = perf_counter()
                if depth is not None:
                    spans.leave(depth)
                ticks.input += end - start
                if not busy:
                    if stream is None:
                        stream = observer.streams.make("input", "input", "dataset")
                    ticks.tick(stream, start, end)

        return get_next

    patch("iterator-next", wrap)
    patch("iterator-optional", wrap)


def _begin(spans: Spans, iterator: Any) -> int | None:
    """A span where this is the first element of an iterator: buffers are filled, a pipeline comes up."""
    fresh = spans.fresh
    if fresh is None or fresh() is not iterator or not spans.here:
        return None
    spans.fresh = None
    file, line, _ = users_code.here(2) or ("", 0, "")
    return spans.enter(Key("iterator", "dataset", file, line))


PROBE = Probe("input_wait", tensorflow=on_tensorflow)
