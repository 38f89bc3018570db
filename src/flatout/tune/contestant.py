"""One that takes part in a race: its program, the blocks of steps that it has run, and how long a step of it takes."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.trial.child_process import ChildProcess, Launch

STALL_SECONDS = 5.0
STALL_TIMES = 50
"""A call that lasts so long, and so many times longer than its neighbours, was held up by the pause before it."""
COSTLY_START = 0.05
"""Of an epoch's steps: what the start of one has to cost for blocks to be made of whole epochs."""
UNSETTLED = 0.25
"""A step after the pause that differs by this much from the later ones still lives on full buffers, or on cold ones."""


@dataclass
class Block:
    times: list[float]
    """Of each call, from end to end of the one before."""
    steps: int
    cpu: float
    counts: list[int] = field(default_factory=list)
    """Steps of each call, where they differ."""
    starts: list[int] = field(default_factory=list)
    """Calls before which a dataset was begun anew."""
    taken: float = 0.0
    """Of all processors, the share that something else had meanwhile."""

    def per_step(self, dropped: int) -> float:
        middle = statistics.median(self.times)
        counts = self.counts or [1] * len(self.times)
        pairs = zip(self.times[dropped:], counts[dropped:], strict=True)
        kept = [(t, n) for t, n in pairs if t < STALL_SECONDS or t < STALL_TIMES * middle]
        if not kept:
            return middle * len(self.times) / self.steps
        return sum(t for t, _ in kept) / (self.steps * sum(n for _, n in kept) / sum(counts))

    @property
    def usual(self) -> float:
        """The middle one of the steps: a single long one (a trace, a checkpoint) does not show in it."""
        return statistics.median(
            t / max(n, 1) for t, n in zip(self.times, self.counts or [1] * len(self.times), strict=True)
        )

    @property
    def cpu_per_step(self) -> float:
        return self.cpu / self.steps


@dataclass
class Contestant:
    launch: Launch
    title: str
    levers: tuple[str, ...] = ()
    """Those it stands for; some may be in its sources, not in its launch."""
    child: ChildProcess | None = None
    blocks: list[Block | None] = field(default_factory=list)
    """One for each round; None where it did not take part."""
    starts: int = 0
    steps: int = 2
    done: int = 0
    """Steps made since it was last started."""
    epoch: int = 0
    """Steps from one start of a dataset to the next; 0 while unknown."""
    over: str = ""
    """Why it takes no further part: won, lost, noise, failed, timeout."""
    note: str = ""
    report: dict[str, Any] = field(default_factory=dict)
    directories: list[Path] = field(default_factory=list)
    peak_bytes: int = 0

    @property
    def running(self) -> bool:
        return not self.over

    def dropped(self) -> int:
        """Calls at the start of a block that are still under the spell of the pause before it."""
        blocks = [block.times for block in self.blocks if block is not None]
        shortest = min((len(times) for times in blocks), default=0)
        if shortest < 4:
            return min(1, shortest - 1)
        steady = statistics.median(t for times in blocks for t in times[len(times) // 2 :])
        middle = (statistics.median(times[i] for times in blocks) for i in range(shortest // 2))
        # Only from the start on: a single step that is off further in is noise, or the program's own rhythm.
        unsettled = itertools.takewhile(lambda t: abs(t - steady) > UNSETTLED * steady, middle)
        return max(1, sum(1 for _ in unsettled))

    def rhythm(self) -> int:
        """Steps of an epoch whose start costs so much that a block without one says something else; else 0."""
        starts = [block.times[i] for block in self.blocks if block is not None for i in block.starts]
        if self.epoch < 2 or not starts:
            return 0
        ordinary = statistics.median(t for block in self.blocks if block is not None for t in block.times)
        return self.epoch if statistics.median(starts) - ordinary > COSTLY_START * ordinary * self.epoch else 0

    def step_times(self) -> list[float | None]:
        dropped = self.dropped()
        return [block.per_step(min(dropped, len(block.times) - 1)) if block else None for block in self.blocks]

    def step_ms(self) -> float | None:
        times = [t for t in self.step_times() if t is not None]
        return statistics.median(times) * 1e3 if times else None
