"""The observer inside the program: what the probes share, each part with one job.

ticks      totals and steps as they end (`ticks.py`); `following.py` takes them up
streams    the ways in which the program shows its steps (`streams.py`)
window     when TensorFlow's profiler runs (`window.py`)
spans      what the main thread is in the middle of (`spans.py`)
hooks      what probes want done now and then, and at the end
shared     what one probe makes and another one uses
trial      what a trial adds: where its steps end
recorder   the files of the recording (`recorder.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import ModuleType
from typing import Any, Literal, Protocol

from flatout.observe.device_clock import DeviceClock
from flatout.observe.following import StepFollower
from flatout.observe.levers import Installed
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.observe.spans import Spans
from flatout.observe.streams import Streams
from flatout.observe.ticks import Thread, Ticks
from flatout.observe.trial_state import TrialState
from flatout.observe.window import Window


class Hooks:
    def __init__(self) -> None:
        self.at_flush: list[Callable[[], None]] = []
        """Called every few seconds and at the end, to write counters that only grow."""
        self.at_end: list[Callable[[], None]] = []


class Functions(Protocol):
    """What the probe of tf.functions knows and others use."""

    @property
    def totals(self) -> Mapping[tuple[str, int, str], Any]:
        """What was counted, by source line."""

    @property
    def trains(self) -> Mapping[int, tuple[bool, Any]]:
        """By the identity of the cache of traces: whether its steps are in a loop, and what counts them."""


class Shared:
    """What one probe makes and another one uses."""

    def __init__(self) -> None:
        self.functions: Functions | None = None
        self.pulls: object = None
        """Kept by the probe of host syncs for itself, from the import of TensorFlow to that of Keras."""
        self.keep_graph: Callable[[Any], None] = lambda graph: None
        self.describe_pipeline: Callable[[Any], object] = lambda dataset: None
        """Puts down the stages of a dataset that is iterated in a way which the probe of pipelines does not see."""


Package = Literal["tensorflow", "keras", "tf_keras"]
PACKAGES: tuple[Package, ...] = ("tensorflow", "keras", "tf_keras")
Install = Callable[["Observer", ModuleType], None]
"""Called with the observer and the package. It patches names of `private_names` and only observes."""


@dataclass(frozen=True)
class Probe:
    """Functions that are called right after a package was imported."""

    name: str
    tensorflow: Install | None = None
    keras: Install | None = None
    tf_keras: Install | None = None

    def install_for(self, package: Package) -> Install | None:
        return {"tensorflow": self.tensorflow, "keras": self.keras, "tf_keras": self.tf_keras}[package]


class Observer:
    def __init__(self, recorder: Recorder, settings: ObserveSettings) -> None:
        self.recorder = recorder
        self.settings = settings
        self.active = True
        self.forks = 0
        self.thread = Thread()
        self.streams = Streams(recorder)
        self.devices = DeviceClock(self.note)
        self.spans = Spans()
        self.window = Window(recorder, settings, self.devices, self.spans)
        self.hooks = Hooks()
        self.shared = Shared()
        self.trial = TrialState()
        self.ticks = Ticks()
        self.injections: Installed | None = None
        """The levers of this process."""
        self.more_probes: list[Probe] = []
        """Probes of a trial or of a command, beside those of `probes/`."""
        self.began = perf_counter()
        """When the interpreter was ready to run the program."""
        self.own_seconds = 0.0
        """What flatout itself has taken of the run, at its start, after imports and at its end."""
        self._follower = StepFollower(self.ticks, recorder, self.window, self.trial, self.write_counters, self.devices)

    def look(self) -> None:
        """Take up all ticks now."""
        self._follower.look()

    def clock(self) -> float:
        """Seconds that the program has had: the trace window may close in the midst of what is being timed."""
        return perf_counter() - self.spans.taken()

    def spend_since(self, began: float) -> float:
        """Count the time since then as flatout's own. Returns the time that it is now."""
        now = perf_counter()
        self.own_seconds += now - began
        return now

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
        self.spans.stop()
        with self.spans.of_flatout():
            self.window.close("the program ended")
            for write in self.hooks.at_end:
                try:
                    write()
                except Exception as error:
                    self.note(f"at the end: {type(error).__name__}: {error}")
            self.recorder.flush()
            self.write_counters()
