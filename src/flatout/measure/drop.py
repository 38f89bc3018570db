"""How much worse a model may be than the original, from a limited number of samples: the upper end of an interval.

Both answer the same samples, so the difference of their metrics is known much better than either of them. Its error
comes from leaving out groups of the samples in turn (the jackknife), which works for any metric, also for those that
are no mean over samples. One thing it cannot see: what has not happened among so few samples. Where a sample counts as
right or wrong, as in an accuracy or an error rate, none that went wrong of n says only that fewer than 3 / n do. So one
more sample is counted as if it had gone wrong, as in the usual approximation of a Poisson bound:

    bound = drop + 1.68 u + t √(error² + u²)        u = 1 / n for such metrics (100 / n in percent), else 0

A drop is what the metric has changed in its bad direction: a rise, where lower is better.

Answers that are the same up to rounding cannot hide a drop: u is 0 for them as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.measure import student

GROUPS = 20
"""Of samples, left out in turn."""
SURE = 0.9
"""Of both sides together: 95 % that the drop is not larger."""
UNSEEN = 1.68
"""1 + z² / 4: with it the bound of a count is that of Poisson's distribution, to 3 %."""
MOST_SAMPLES = 1_000_000


@dataclass(frozen=True)
class Drop:
    value: float
    error: float
    """Standard error."""
    samples: int
    groups: int = GROUPS
    counts: bool = False
    """Each sample is right or wrong."""
    scale: float = 1.0
    """Of such a metric: 1, or 100 in percent."""

    def bound(self, samples: int | None = None) -> float:
        """The drop is at most this, with 95 %. With another number of samples: what it would be about."""
        count = samples or self.samples
        unit = self.scale / count if self.counts else 0.0
        error = self.error * math.sqrt(self.samples / count)
        return self.value + UNSEEN * unit + student.quantile(SURE, max(self.groups - 1, 1)) * math.hypot(error, unit)

    def samples_to_show(self, allowed: float) -> int | None:
        """About how many samples show that the drop is not more than allowed, if it is what it seems; None: no number
        does."""
        if self.value >= allowed:
            return None
        count = self.samples
        while self.bound(count) > allowed:
            count = math.ceil(1.05 * count)
            if count > MOST_SAMPLES:
                return None
        digits = int(10 ** max(len(str(count)) - 2, 0))
        return math.ceil(count / digits) * digits


def drop_of(value: float, without: Sequence[float], samples: int, counts: bool, scale: float = 1.0) -> Drop:
    """`without`: the drop of all samples but one group, for each group."""
    groups = len(without)
    if groups < 2 or not all(map(math.isfinite, without)):
        return Drop(value, math.inf, samples, 2, counts, scale)
    mean = math.fsum(without) / groups
    variance = (groups - 1) / groups * math.fsum((one - mean) ** 2 for one in without)
    return Drop(value, math.sqrt(variance), samples, groups, counts, scale)
