"""How the speed of the machine differed between two sides, and how far the program follows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from flatout.measure.pace import LEAST_ERROR
from flatout.store.run import Run


@dataclass(frozen=True)
class Shift:
    """How the machine differed between two sides, and how far the program follows it."""

    slower: float
    """By this share the work took longer after than before."""
    follows: float
    error: float
    measured_ms: float
    """The step after, as it was measured."""

    @property
    def log(self) -> float:
        return math.log1p(self.slower)

    @property
    def factor(self) -> float:
        """What a time measured after is to be multiplied with, to be one of the machine before."""
        return math.exp(-self.follows * self.log)

    def level(self, run: Run) -> float:
        """The logarithm of a run's median, the machine's speed apart. Two runs with and without a pace do not mix."""
        return math.log(run.median_ms) - self.follows * math.log(run.pace_us or 1.0)


def shift(before: Sequence[Run], after: Sequence[Run]) -> Shift | None:
    """None where a run does not know its machine's speed, or they measured it by different means."""
    runs = (*before, *after)
    if any(not run.pace_us for run in runs) or len({run.pace_by for run in runs}) > 1:
        return None
    weights = [max(run.follows_error, LEAST_ERROR) ** -2 for run in runs]
    follows = sum(weight * run.follows for weight, run in zip(weights, runs, strict=True)) / sum(weights)
    error = math.sqrt(fmean(max(run.follows_error, LEAST_ERROR) ** 2 for run in runs))  # they share what they assume
    old, new = (fmean(math.log(run.pace_us or 1.0) for run in side) for side in (before, after))
    measured = math.exp(fmean(math.log(run.median_ms) for run in after))
    return Shift(math.expm1(new - old), follows, error, measured)
