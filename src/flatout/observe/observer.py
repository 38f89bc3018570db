"""The state that the probes share inside the child: running totals, streams of step candidates, the trace window.

A program may show its steps in several ways at once (a fit batch, the tf.function inside it, an optimizer call). Each
way is a stream of ticks; all are recorded, and `assemble` decides afterwards which stream is the step. Only the trace
window needs an opinion at run time: it follows the best stream seen so far.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from flatout.model.vocabulary import StreamKind
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.observe.streams import Stream, Streams
from flatout.observe.window import Window

if TYPE_CHECKING:
    from flatout.observe.injection import Installed

MOST_ROWS = 200_000
"""Ticks of one stream that are kept one by one; afterwards they are only counted."""


SILENCE = 1.0
"""Seconds after which a stream of lower rank takes over from a better one that has fallen silent."""


CALL, TRACE, KERAS = 1, 2, 4
"""Where a thread is: in a call into TensorFlow, tracing, in fit or predict (whose batches are the steps then)."""


class Thread(threading.local):
    """What each thread is in the middle of, so that only the outermost of nested calls counts."""

    def __init__(self) -> None:
        # TensorFlow's own threads enter Python to run py_function: what they do there is no step of the program.
        if threading.get_ident() not in threading._active:  # type: ignore[attr-defined]
            self.busy = CALL | KERAS

    busy = 0
    apply = 0
    model = 0


def _ignore(row: tuple[Any, ...]) -> None:
    """Takes the place of `put_down` when the program has ended."""


class Observer:
    def __init__(self, recorder: Recorder, settings: ObserveSettings) -> None:
        self.recorder = recorder
        self.settings = settings
        self.thread = Thread()
        self.input = 0.0
        self.trace = 0.0
        self.call = 0.0
        self.sync = 0.0
        self.called = 0.0
        """When the last call of a tf.function began, and (`call_since`) the one that is under way."""
        self.call_since = 0.0
        self.streams = Streams(recorder)
        self.held = 0
        """How often a trial has stood at its gate."""
        self.not_steps: frozenset[StreamKind] = frozenset()
        """Kinds of streams that are no step of this program, as is known from an earlier run of it."""
        self.window = Window(recorder, settings)
        self.active = True
        self.forks = 0
        self.prompt: Any = self.look_at_once
        """Called with each tick as it comes, where somebody waits for it."""
        self._put_down: deque[tuple[Any, ...]] = deque()
        self.put_down = self._put_down.append
        self._looked = 0.0
        self._best = 0
        self._best_last = 0.0
        self._flushed = time.perf_counter()
        self._counted = self._flushed
        self.at_flush: list[Any] = []
        """Called every few seconds and at the end, to write counters that only grow."""
        self.at_end: list[Any] = []
        self.functions: Any = None
        self.keep_graph: Any = lambda graph: None
        self.pulls: Any = None
        self.injections: Installed | None = None
        self.companions: list[Any] = []
        """Modules beside the probes that want to know of imported packages: `on_tensorflow`, `on_keras`, …"""
        self.at_step: Any = None
        """Called as (stream, end, n) when a step has ended and all else was recorded; it may hold the program."""
        self.optimizers: dict[int, Any] = {}
        self.epochs = 0
        """Iterators over datasets that a trial has made so far: an epoch begins with each."""

    def tick(self, stream: Stream, start: float, end: float, n: int = 1) -> None:
        """One candidate step ended. Everything here is on the program's hot path: TensorFlow has swept the caches, and
        every object that is touched costs more than the code. So it is only put down, and looked at with others."""
        self.put_down((stream, n, start, end, self.input, self.trace, self.call, self.sync))
        if self.prompt is not None:
            self.prompt(stream, end, n)
        elif end - self._looked > 0.1:
            self.look()

    def look_at_once(self, stream: Stream, end: float, n: int) -> None:
        self.window.mark(stream, n)
        self.look()

    def look_soon(self, stream: Stream, end: float, n: int) -> None:
        """While the trace window is open: each step is marked in it, all else can wait a moment."""
        self.window.mark(stream, n)
        if end - self._looked > 0.02:
            self.look()

    def look(self) -> None:
        """Take up what `tick` has put down."""
        window, rows = self.window, self._put_down
        while True:
            try:
                row = rows.popleft()
            except IndexError:
                break
            stream, n, start, end, _, traced, _, _ = row
            stream.count += n
            stream.seen += 1
            if stream.kind in self.not_steps or (stream.rank < self._best and end - self._best_last < SILENCE):
                continue  # another phase, or part of a step that is seen better: counting it is enough
            self._best = stream.rank
            self._best_last = self._looked = end
            if stream.seen <= MOST_ROWS:
                self.recorder.extend((stream.id, *row[1:]))
            if not stream.first:
                stream.first = start
            stream.last = end
            if window.wants_ticks:
                window.tick(stream, end, n, traced)
            if end - self._flushed > 0.25:
                self._flushed = end
                self.recorder.flush()
                if end - self._counted > 3.0:
                    self._counted = end
                    self.write_counters()
            if self.at_step is not None:
                self.at_step(stream, end, n)
        if self.at_step is not None or window.impatient:
            self.prompt = self.look_at_once
        elif window.is_open:
            self.prompt = self.look_soon
        else:
            self.prompt = None

    def write_counters(self) -> None:
        with self.recorder.counting():
            for stream in list(self.streams.values()):
                self.recorder.fact("stream-count", id=stream.id, count=stream.count, seen=stream.seen)
            for write in self.at_flush:
                try:
                    write()
                except Exception as error:
                    self.note(f"a counter could not be written: {type(error).__name__}: {error}")

    def note(self, text: str) -> None:
        self.recorder.fact("note", text=text)

    def finish(self) -> None:
        if not self.active:
            return
        self.look()
        self.put_down = _ignore  # what runs from here on is ours
        self.active = False
        self.window.close("the program ended")
        for write in self.at_end:
            try:
                write()
            except Exception as error:
                self.note(f"at the end: {type(error).__name__}: {error}")
        self.recorder.flush()
        self.write_counters()
