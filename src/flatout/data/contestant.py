"""Pipelines side by side: the contestants are passes over tf.data pipelines in this process.

A pass takes a fixed number of elements from a new iterator, many at a time, so that it is not Python that is measured.
The first pass of each is not counted: it fills caches and makes kernels.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

from flatout.measure import race
from flatout.measure.processors import Mark
from flatout.measure.race import Exit, Race, TimeLimit, Verdict
from flatout.measure.race.rules import DEFAULT
from flatout.observe import stages
from flatout.pipeline import stage_costs

PASS_SECONDS = 0.2
MOST_EPOCHS = 64
FEWEST_ROUNDS = 2
"""Rounds that are always run, so that the time of a pass can be shown even if it cannot be compared."""
MAX_WINDOW, WINDOW_BYTES = 128, 64 << 20
"""Elements fetched at a time, because each call into Python costs as much as some small batches."""


@dataclass
class Pipeline:
    """A dataset that is raced. It is kept between races, with its caches."""

    dataset: Any
    elements: int
    """Elements of one epoch; of an infinite pipeline, those of a pass."""
    epochs: int = 1
    """Epochs of one pass."""
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
            del iterator  # its threads end before another pipeline runs
        return wall, cpu

    def warm(self) -> None:
        """Run a pass that fills caches, then one to find how many epochs make a pass long enough."""
        if not self.is_warm:
            self.run()
        self.is_warm = True
        seconds = self.run()[0]
        self.epochs = max(1, min(MOST_EPOCHS, round(PASS_SECONDS / max(seconds / self.epochs, 1e-6))))

    @functools.cached_property
    def _several_at_a_time(self) -> Any:
        size = stages.element_bytes(self.dataset.element_spec)
        if size is None:
            size = stage_costs.bytes_of(next(iter(self.dataset)))
        window = max(1, min(MAX_WINDOW, WINDOW_BYTES // max(size, 1)))
        # One more than there are, because a cache is complete only after its end was reached.
        return self.dataset.take(self.elements + 1).window(window)


@dataclass(eq=False)
class Contestant(race.Contestant):
    """Units are elements. Exceptions of a pipeline are raised: the caller knows what was tried."""

    pipeline: Pipeline
    label: str
    elsewhere: bool = False
    """Whether other processes do its work; then their use of the processors is not a disturbance."""

    @property
    def name(self) -> str:
        return self.label

    def run_block(self) -> race.Block | Exit | None:
        mark = Mark.now()
        wall, cpu = self.pipeline.run()
        taken = 0.0 if self.elsewhere else mark.taken_since(cpu)
        return race.Block([wall], max(self.pipeline.elements * self.pipeline.epochs, 1), cpu, taken)

    def elements_per_second(self) -> float:
        return 1 / (self.unit_seconds() or float("inf"))


@dataclass(frozen=True)
class Raced:
    before: Contestant
    after: Contestant
    verdict: Verdict


def compare(before: Pipeline, after: Pipeline, limit: TimeLimit, elsewhere: bool = False) -> Raced:
    """How many times as fast `after` is."""
    before.warm()
    after.warm()
    after.epochs = before.epochs
    base, one = Contestant(before, "before", elsewhere), Contestant(after, "after", elsewhere)
    found = Race([base])
    found.run([one], DEFAULT, limit)
    return Raced(base, one, found.verdict(one))
