"""How far apart the medians of two runs of the same program lie.

Two processes of one program differ although nothing was changed: the memory layout differs, the machine is a little
busier, clock rates vary. The steps of one run cannot show this. The estimate starts from a prior (`PRIOR`, with the
weight of `PRIOR_WEIGHT` repeats). Each repeat, on either side or in the history, corrects it, and the more repeats
there are, the less the prior counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from flatout.measure import student

PRIOR = 0.03
"""Standard deviation of the logarithm of a run's median, for a machine that does nothing else."""
PRIOR_WEIGHT = 10
"""The number of repeats that the prior counts for."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation of a run's median around the program's, in logarithms."""

    share: float
    freedom: float
    """Degrees of freedom of the estimate, the prior included."""
    repeats: int
    """Degrees of freedom that come from repeats."""
    seen: float = 0.0
    """What repeats alone show, without the prior; 0 where there are none."""

    def half_width(self, before: int, after: int, confidence: float) -> float:
        """Half the interval of the logarithm of a ratio between `before` runs and `after` runs."""
        return student_quantile(confidence, self.freedom) * self.share * math.sqrt(1 / before + 1 / after)


def estimate(
    groups: Sequence[Sequence[float]], within: float = 0.0, prior: float = PRIOR, weight: float = PRIOR_WEIGHT
) -> Spread:
    """From groups of repeats: the logarithms of the medians of runs between which nothing was changed.

    `within` is the error that the steps of a single run explain. It is part of what repeats show.
    """
    squares, freedom = 0.0, 0
    for group in groups:
        if len(group) > 1:
            middle = fmean(group)
            squares += sum((value - middle) ** 2 for value in group)
            freedom += len(group) - 1
    variance = (weight * (prior**2 + within**2) + squares) / (weight + freedom)
    # Repeats that agree do not make a run more precise than its own steps allow.
    seen = math.sqrt(squares / freedom) if freedom else 0.0
    return Spread(math.sqrt(max(variance, within**2)), weight + freedom, freedom, seen)


def student_quantile(confidence: float, freedom: float) -> float:
    """The quantile of Student's t for a two-sided interval; from ten degrees on Cornish–Fisher, which is
    exact enough there at any confidence."""
    if freedom < 10:
        return student.quantile(confidence, max(int(freedom), 1))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )
