"""The hot path of the observer: running totals, and the candidates of steps as they end.

When a step ends, TensorFlow has swept the caches, and every object that is touched costs more than the code. So totals
and `tick` are in one object; a tick is only put down, and taken up later together with others (`following.py`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.observe.streams import Stream

CALL, TRACE, KERAS = 1, 2, 4
"""What a thread is in: a call into TensorFlow, tracing, `fit` or `predict` (whose batches are the steps then)."""

Row = tuple[Any, ...]
"""(stream, n, start, end, input, trace, call, sync): `recorder.TICK_FIELDS` with the stream itself in front."""


class Thread(threading.local):
    """What each thread is in the middle of, so that only the outermost of nested calls counts."""

    def __init__(self) -> None:
        # TensorFlow's own threads enter Python to run py_function: what they do there is no step of the program.
        if threading.get_ident() not in threading._active:  # type: ignore[attr-defined]
            self.busy = CALL | KERAS

    busy = 0
    apply = 0
    model = 0


class Ticks:
    def __init__(self) -> None:
        self.input = 0.0
        """Seconds so far: waiting for input, tracing, inside calls into TensorFlow, pulling values out of it."""
        self.trace = 0.0
        self.call = 0.0
        self.sync = 0.0
        self.called = 0.0
        """When the last call of a tf.function began, and (`call_since`) the one that is under way."""
        self.call_since = 0.0
        self.rows: deque[Row] = deque()
        self.looked = 0.0
        """The end of the newest row that was taken up."""
        self.look: Callable[[], None] = _nothing
        """Takes up the rows."""
        self.at_once: Callable[[Stream, float, int], None] | None = None
        """Called with each tick as it comes, where somebody waits for it."""
        self._put_down: Callable[[Row], None] = self.rows.append

    def tick(self, stream: Stream, start: float, end: float, n: int = 1) -> None:
        """A call that makes `n` candidate steps has ended."""
        self._put_down((stream, n, start, end, self.input, self.trace, self.call, self.sync))
        if self.at_once is not None:
            self.at_once(stream, end, n)
        elif end - self.looked > 0.1:
            self.look()

    def stop(self) -> None:
        """What ends from here on is no step of the program."""
        self._put_down = _ignore


def _ignore(row: Row) -> None:
    pass


def _nothing() -> None:
    pass
