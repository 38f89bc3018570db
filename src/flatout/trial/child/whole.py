"""Counts the steps of a program that is run from its start to its end, and holds it nowhere."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from flatout.observe.levers import failed_levers
from flatout.observe.observer import Probe
from flatout.observe.streams import RANK
from flatout.process.messages import encode
from flatout.trial.messages import StepsSeen

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.trial.settings import WholeSettings

FILE = "steps.json"
COVERS = 0.25
"""As in `observe.reading.steps`: of the time of the longest kind of step."""
LONGEST = 400
"""Characters of why levers have failed."""
WRITTEN_EVERY = 1.0
"""Seconds. So that a run that is stopped has left its count."""


class Whole:
    def __init__(self, observer: Observer, settings: WholeSettings) -> None:
        self._path = os.path.join(observer.recorder.directory, FILE)
        self._least_rank = RANK[settings.least_step] if settings.least_step is not None else 0
        self._counts: dict[int, _Count] = {}
        """By the rank of the kind of step."""
        self._written = 0.0
        self._counted = False
        """Whether something was counted since it was written."""
        self._observer, self._importing = observer, 0.0
        self._process = os.getpid()
        observer.more_probes.append(Probe("whole run", self._imported, self._imported, self._imported))
        observer.trial.not_steps = frozenset(settings.not_steps)
        atexit.register(self._write)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        if stream.rank >= self._least_rank:
            count = self._counts.get(stream.rank)
            if count is None:
                count = self._counts[stream.rank] = _Count(first=end)
            count.steps += n
            count.last = end
            self._counted = True
        # Not with steps alone: a program that has trained may be stopped in the midst of what it goes on with.
        if self._counted and end - self._written > WRITTEN_EVERY:
            self._written, self._counted = end, False
            self._write()

    def _imported(self, observer: Observer, module: ModuleType) -> None:
        if not self._counts:  # an import inside the loop is a part of it
            self._importing = time.perf_counter() - observer.began - observer.own_seconds

    def _write(self) -> None:
        if os.getpid() != self._process:  # a process that the program has forked
            return
        with contextlib.suppress(OSError):
            temporary = f"{self._path}.new"
            with open(temporary, "w", encoding="ascii") as stream:
                stream.write(encode(self._seen()))
            os.replace(temporary, self._path)

    def _seen(self) -> StepsSeen:
        """By the highest kind that went on for a good part of the time: a call of `fit` to begin with is no step."""
        longest = max((count.seconds for count in self._counts.values()), default=0.0)
        wide = [rank for rank, count in self._counts.items() if count.seconds >= COVERS * longest]
        rank = max(wide, default=0)
        count = self._counts.get(rank, _Count())
        return StepsSeen(count.steps, count.seconds, self._importing, rank, self._observer.own_seconds, self._failed())

    def _failed(self) -> str:
        """What a run is no longer a run with."""
        injections = self._observer.injections
        return failed_levers(injections.report())[:LONGEST] if injections is not None else ""


@dataclass
class _Count:
    first: float = 0.0
    last: float = 0.0
    steps: int = 0

    @property
    def seconds(self) -> float:
        """From the end of the first to that of the last."""
        return max(self.last - self.first, 0.0)
