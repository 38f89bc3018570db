"""How far apart two runs of the very same thing lie.

Two processes of one program differ although nothing was changed: memory lies elsewhere, the machine is a little
busier, clocks rise and fall. The steps of one run cannot show that. What is known beforehand is stated (`STATED`, with
the weight of `WEIGHT` repeats); each repeat, on either side or in the history, corrects it. The more repeats there are,
the less the statement counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

STATED = 0.03
"""Standard deviation of the logarithm of a run's median, for a machine that does nothing else."""
WEIGHT = 10
"""The repeats that the statement counts for."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation of a run's median around the program's, in logarithms, and what is known of it."""

    share: float
    freedom: float
    repeats: int

    def half_width(self, before: int, after: int, confidence: float) -> float:
        """Half the interval of the logarithm of a ratio between `before` runs and `after` runs."""
        return student(confidence, self.freedom) * self.share * math.sqrt(1 / before + 1 / after)


def spread(
    groups: Sequence[Sequence[float]], within: float = 0.0, stated: float = STATED, weight: float = WEIGHT
) -> Spread:
    """From groups of repeats: the logarithms of the medians of runs that had nothing different about them.

    `within` is the error that the steps of a run alone explain; it is part of what repeats show.
    """
    squares, freedom = 0.0, 0
    for group in groups:
        if len(group) > 1:
            middle = fmean(group)
            squares += sum((value - middle) ** 2 for value in group)
            freedom += len(group) - 1
    variance = (weight * (stated**2 + within**2) + squares) / (weight + freedom)
    # A run that was itself unsteady stays so, however calm the repeats were.
    return Spread(math.sqrt(max(variance, within**2)), weight + freedom, freedom)


def student(confidence: float, freedom: float) -> float:
    """The quantile of Student's t for a two-sided interval (Cornish–Fisher; good to 0.1 % from six degrees on)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )
