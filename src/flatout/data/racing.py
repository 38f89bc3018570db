"""Two pipelines side by side: passes in turns, in shuffled order, and the interval of their ratio.

A pass takes a fixed number of elements from a new iterator, many at a time, so that it is not Python that is measured.
The first pass of each is not counted: it fills caches and makes kernels.
"""

from __future__ import annotations

import functools
import random
import time
from dataclasses import dataclass, field
from typing import Any

from flatout.measure.interval import paired_ratio, rounds_needed
from flatout.model.case import Interval
from flatout.observe import stages
from flatout.pipeline import costing

PASS_SECONDS = 0.2
MOST_EPOCHS = 64
MOST_ROUNDS = 20
CONFIDENCE = 0.95
ALIKE = 0.04
"""A ratio this near to 1 is taken for no gain without more rounds."""
MOST_HELD, HELD_BYTES = 128, 64 << 20
"""Elements that are taken at a time: each call into Python costs as much as some small batches."""


@dataclass
class Runner:
    """One pipeline in the race."""

    dataset: Any
    elements: int
    """Of one epoch, or as many as a pass takes of a pipeline without end."""
    epochs: int = 1
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    is_warm: bool = False

    def run(self) -> tuple[float, float]:
        """Wall and CPU seconds of one pass."""
        wall = cpu = 0.0
        for _ in range(self.epochs):
            iterator = iter(self._several_at_a_time)
            began, busy = time.perf_counter(), time.process_time()
            for _ in iterator:
                pass
            wall += time.perf_counter() - began
            cpu += time.process_time() - busy
            del iterator  # its threads end before the other one's turn
        return wall, cpu

    @functools.cached_property
    def _several_at_a_time(self) -> Any:
        size = stages.element_bytes(self.dataset.element_spec)
        if size is None:
            size = costing.bytes_of(next(iter(self.dataset)))
        held = max(1, min(MOST_HELD, HELD_BYTES // max(size, 1)))
        # One more than there are: a cache is complete only when its end was seen.
        return self.dataset.take(self.elements + 1).window(held)

    def warm(self) -> float:
        """A pass that fills caches, then one that tells how many epochs a pass is to have; answers with its time."""
        self.seconds.clear()
        self.cpu.clear()
        if not self.is_warm:
            self.run()
        self.is_warm = True
        once = self.run()[0]
        self.epochs = max(1, min(MOST_EPOCHS, round(PASS_SECONDS / max(once / self.epochs, 1e-6))))
        return once


def race(before: Runner, after: Runner, deadline: float = float("inf"), extra: float = float("inf")) -> Interval | None:
    """How many times as fast `after` is; None where there was no time for rounds enough.

    What looks like a gain and is not sure yet gets more rounds, for `extra` seconds at most.
    """
    more = time.monotonic() + extra
    before.warm()
    after.warm()
    after.epochs = before.epochs
    order, chance = [before, after], random.Random()
    found: Interval | None = None
    while len(before.seconds) < MOST_ROUNDS and (time.monotonic() < deadline or len(before.seconds) < 2):
        chance.shuffle(order)
        for runner in order:
            wall, cpu = runner.run()
            runner.seconds.append(wall)
            runner.cpu.append(max(cpu, 1e-6))
        if len(before.seconds) >= rounds_needed(CONFIDENCE):
            found = paired_ratio(before.seconds, after.seconds, CONFIDENCE)
        if found is not None and (not _promising(found) or time.monotonic() > more):
            break
    return found


def _promising(found: Interval) -> bool:
    return found.low <= 1.0 and found.ratio > 1.0 + ALIKE
