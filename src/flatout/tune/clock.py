"""How the time of a tune is divided: trying levers, and confirming what has won.

Nothing is divided by a fixed share. What confirming takes is estimated from how long this program takes to start and to
step; all the rest is for trying. Where nothing is ahead, there is nothing to confirm, and trying goes on to the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

DEFAULT_SECONDS, MOST_BY_DEFAULT = 480.0, 1500.0
STARTS_OF_A_TUNE = 28
"""Starts that a tune has time for by default, whatever they take; two trials start at a time."""
CLOSING_SECONDS = 5.0
"""Kept back in any case."""
LEAST_RESERVE = 30.0
MOST_RESERVE = 0.6
"""Of the budget: what confirming may keep from trying."""
MOST_KEPT = 0.8
"""The same with what cures of the run keep."""
UNKNOWN_WHOLE_RUN = 0.2
"""Of the budget, for whole runs of a program that was not seen to end."""
BOUNDS = 0.2
"""Of the budget: what bounds and their baselines may take."""
MOST_WHOLE_RUNS = 0.4
"""Of the budget, where they take long."""
CONFIRMED_SETS = 4
CONFIRMING_ROUNDS = 10
STARTED_ANEW = 8
BLOCKS_ANEW = 40
"""In two groups of rounds with fresh processes: two baselines, the levers and their patch."""
PARITY_RUNS = 4
"""Runs with pinned random numbers, two at a time."""
WHOLE_RUNS = 8.0
"""Of the program to its end: three pairs, patched and as it is, and to compare what both compute."""


@dataclass
class Clock:
    budget: float
    began: float = field(default_factory=time.monotonic)
    reserved: float = 0.0
    """Seconds kept for confirming, for the patch and for whole runs."""
    anew: float = 0.0
    """Of these: for what is to be claimed in processes that are started anew."""
    for_run: float = 0.0
    """Seconds kept for the cures of the run beside that."""

    def __post_init__(self) -> None:
        self.reserved = self.reserved or 0.4 * self.budget

    def extend(self, start: float) -> bool:
        """Give a program whose trials take so many seconds to start what it needs by default. Returns whether that is
        more than there is."""
        wanted = min(STARTS_OF_A_TUNE * start, MOST_BY_DEFAULT)
        if wanted <= self.budget:
            return False
        self.budget = wanted
        return True

    @property
    def end(self) -> float:
        return self.began + self.budget

    @property
    def exploring_until(self) -> float:
        kept = min(self.reserved + self.for_run, MOST_KEPT * self.budget) if self.for_run else self.reserved
        return self.end - kept

    @property
    def closing(self) -> float:
        """Until when trying may go on where nothing is ahead."""
        return self.end - CLOSING_SECONDS - self.for_run

    def spent(self) -> float:
        return time.monotonic() - self.began

    def left_to_explore(self) -> float:
        return self.exploring_until - time.monotonic()

    def left(self) -> float:
        return self.end - time.monotonic()

    def reserve(self, start: float, block: float, whole_run: float | None) -> None:
        """Keep back what confirming is likely to take.

        `start`: seconds until a trial is warm; `block`: seconds of a block of the baseline; `whole_run`: seconds of the
        whole program, None where it was not seen to end.
        """
        starts = (CONFIRMED_SETS + 3 + PARITY_RUNS) / 2  # two at a time
        blocks = CONFIRMING_ROUNDS * (CONFIRMED_SETS + 2)
        self.anew = STARTED_ANEW / 2 * start + BLOCKS_ANEW * block
        wanted = starts * start + blocks * block + self.anew + self.for_whole_runs(whole_run)
        self.reserved = min(max(wanted, LEAST_RESERVE), MOST_RESERVE * self.budget)

    def for_whole_runs(self, whole_run: float | None) -> float:
        if whole_run is None:
            return UNKNOWN_WHOLE_RUN * self.budget
        return min(WHOLE_RUNS * whole_run, MOST_WHOLE_RUNS * self.budget)


@dataclass
class SharedClock(Clock):
    """The clock of a tune as another machine has it, which races levers and confirms none of them: what is kept for
    that was told to it."""

    def reserve(self, start: float, block: float, whole_run: float | None) -> None:
        """What is kept stays as it is."""
