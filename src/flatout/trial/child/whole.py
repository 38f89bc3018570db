"""Counts the steps of a program that is run from its start to its end, and holds it nowhere."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from types import ModuleType
from typing import TYPE_CHECKING

from flatout.observe.observer import Probe
from flatout.observe.streams import RANK
from flatout.process.messages import encode
from flatout.trial.messages import StepsSeen

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.trial.settings import WholeSettings

FILE = "steps.json"
WRITTEN_EVERY = 1.0
"""Seconds. So that a run that is stopped has left its count."""


class Whole:
    def __init__(self, observer: Observer, settings: WholeSettings) -> None:
        self._path = os.path.join(observer.recorder.directory, FILE)
        self._least_rank = RANK[settings.least_step] if settings.least_step is not None else 0
        self._rank = 0
        self._steps = 0
        self._first = self._last = self._written = 0.0
        self._began, self._importing = time.perf_counter(), 0.0
        self._process = os.getpid()
        observer.more_probes.append(Probe("whole run", self._imported, self._imported, self._imported))
        observer.trial.not_steps = frozenset(settings.not_steps)
        atexit.register(self._write)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        rank = stream.rank
        if rank != self._rank:
            if rank < self._rank or rank < self._least_rank:
                return
            self._rank, self._steps, self._first = rank, 0, end  # what was counted so far was not the step
        self._steps += n
        self._last = end
        if end - self._written > WRITTEN_EVERY:
            self._written = end
            self._write()

    def _imported(self, observer: Observer, module: ModuleType) -> None:
        if not self._steps:  # an import inside the loop is a part of it
            self._importing = time.perf_counter() - self._began

    def _write(self) -> None:
        if os.getpid() != self._process:  # a process that the program has forked
            return
        with contextlib.suppress(OSError):
            temporary = f"{self._path}.new"
            with open(temporary, "w", encoding="ascii") as stream:
                seen = StepsSeen(self._steps, self._last - self._first, self._importing, self._rank)
                stream.write(encode(seen))
            os.replace(temporary, self._path)
