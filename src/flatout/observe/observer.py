"""The observer inside the program: what the probes share, each part with one job.

ticks      totals and steps as they end (`ticks.py`); `following.py` takes them up
streams    the ways in which the program shows its steps (`streams.py`)
window     when TensorFlow's profiler runs (`window.py`)
hooks      what probes want done now and then, and at the end
shared     what one probe makes and another one uses
trial      what a trial adds: where its steps end
recorder   the files of the recording (`recorder.py`)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flatout.model.vocabulary import StreamKind
from flatout.observe.following import StepFollower
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.observe.streams import Stream, Streams
from flatout.observe.ticks import Thread, Ticks
from flatout.observe.window import Window

if TYPE_CHECKING:
    from flatout.observe.injection import Installed
    from flatout.observe.probe import Probe
    from flatout.observe.probes.functions import Functions
    from flatout.observe.probes.host_sync import Pulls


class Hooks:
    def __init__(self) -> None:
        self.at_flush: list[Callable[[], None]] = []
        """Called every few seconds and at the end, to write counters that only grow."""
        self.at_end: list[Callable[[], None]] = []


class Shared:
    """What one probe makes and another one uses."""

    def __init__(self) -> None:
        self.functions: Functions | None = None
        self.pulls: Pulls | None = None
        self.keep_graph: Callable[[Any], None] = lambda graph: None


class TrialState:
    """The trial's part; a run without one leaves it as it is."""

    def __init__(self) -> None:
        self.at_step: Callable[[Stream, float, int], None] | None = None
        """Called as (stream, end, n) when a step has ended and all else was recorded; it may hold the program."""
        self.not_steps: frozenset[StreamKind] = frozenset()
        """Kinds of streams that are no step of this program, as is known from an earlier run of it."""
        self.held = 0
        """How often the program has been held at its gate."""
        self.epochs = 0
        """Iterators over datasets made so far: an epoch begins with each."""
        self.optimizers: dict[int, Any] = {}
        """Those that have made an update, by their identity."""


class Observer:
    def __init__(self, recorder: Recorder, settings: ObserveSettings) -> None:
        self.recorder = recorder
        self.settings = settings
        self.active = True
        self.forks = 0
        self.thread = Thread()
        self.streams = Streams(recorder)
        self.window = Window(recorder, settings)
        self.hooks = Hooks()
        self.shared = Shared()
        self.trial = TrialState()
        self.ticks = Ticks()
        self.injections: Installed | None = None
        """The levers of this process."""
        self.more_probes: list[Probe] = []
        """Probes of a trial or of a command, beside those of `probes/`."""
        self._follower = StepFollower(self.ticks, recorder, self.window, self.trial, self.write_counters)

    def look(self) -> None:
        """Take up all ticks now."""
        self._follower.look()

    def note(self, text: str) -> None:
        """Something that the reader of the case should know."""
        self.recorder.fact("note", text=text)

    def write_counters(self) -> None:
        with self.recorder.counting():
            for stream in list(self.streams.values()):
                self.recorder.fact("stream-count", id=stream.id, count=stream.count, seen=stream.seen)
            for write in self.hooks.at_flush:
                try:
                    write()
                except Exception as error:
                    self.note(f"a counter could not be written: {type(error).__name__}: {error}")

    def finish(self) -> None:
        if not self.active:
            return
        self.look()
        self.ticks.stop()
        self.active = False
        self.window.close("the program ended")
        for write in self.hooks.at_end:
            try:
                write()
            except Exception as error:
                self.note(f"at the end: {type(error).__name__}: {error}")
        self.recorder.flush()
        self.write_counters()
