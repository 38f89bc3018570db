"""How the speed of the machine differed between two sides, and how far the program's steps follow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from flatout.measure.pace import LEAST_ERROR
from flatout.store.run_summary import Run


@dataclass(frozen=True)
class MachineShift:
    slower: float
    """The share by which a fixed piece of work took longer after than before."""
    follows: float
    """By how much the logarithm of the step grows with that of the fixed work."""
    error: float
    """Standard error of `follows`."""
    measured_ms: float
    """The step after, as it was measured."""

    @property
    def log(self) -> float:
        return math.log1p(self.slower)

    @property
    def factor(self) -> float:
        """A time measured after, multiplied by this, is what the machine before would have taken."""
        return math.exp(-self.follows * self.log)

    def level(self, run: Run) -> float:
        """The logarithm of a run's median without the influence of the machine's speed.

        Levels of runs with and without a measured speed must not be mixed.
        """
        return math.log(run.median_ms) - self.follows * math.log(run.pace_us or 1.0)


def machine_shift(before: Sequence[Run], after: Sequence[Run]) -> MachineShift | None:
    """None where the speed was not measured in every run, or not in the same way."""
    runs = (*before, *after)
    if any(not run.pace_us for run in runs) or len({run.pace_by for run in runs}) > 1:
        return None
    weights = [max(run.follows_error, LEAST_ERROR) ** -2 for run in runs]
    follows = sum(weight * run.follows for weight, run in zip(weights, runs, strict=True)) / sum(weights)
    # All runs rest on the same assumption, so their errors do not average out.
    error = math.sqrt(fmean(max(run.follows_error, LEAST_ERROR) ** 2 for run in runs))
    old, new = (fmean(math.log(run.pace_us or 1.0) for run in side) for side in (before, after))
    measured = math.exp(fmean(math.log(run.median_ms) for run in after))
    return MachineShift(math.expm1(new - old), follows, error, measured)
