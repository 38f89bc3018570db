"""The ratio of two programs from very few pairs of runs, such as whole runs of a minute each.

A sign test needs six pairs. For fewer, an error of the process is assumed: the logarithm of a run's time has a standard
deviation of about 5 %, known from many processes of the same program on shared machines. That is worth as much as four
degrees of freedom; the pairs add their own. A program that makes another number of steps each time, as one that plays a
game, has more of an error than that: what runs of the same side differ by is added. What the two sides differ by is no
chance. The interval is that in which the ratio of
three further pairs is expected with 95 %: whoever repeats the measurement should find it true.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from flatout.measure import student
from flatout.measure.interval import confidence_for
from flatout.model.case import Interval

RUN_ERROR = 0.05
"""Of the logarithm of one run's time."""
KNOWN_FROM = 4
"""Degrees of freedom that this is worth."""
REPEATED = 3
"""Pairs of whoever repeats it."""


def ratio_of_few(
    before: Sequence[float], after: Sequence[float], lengths: Sequence[Sequence[float]] = (), comparisons: int = 1
) -> Interval:
    """How many times longer `before` takes than `after`, from one pair or more.

    `lengths`: how many steps the runs made, of each side by itself, where chance decides that. `comparisons`: changes
    of which the best is claimed.
    """
    logs = [math.log(b / a) for b, a in zip(before, after, strict=True)]
    middle = statistics.fmean(logs)
    freedom = KNOWN_FROM + len(logs) - 1
    squares = sum((one - middle) ** 2 for one in logs)
    error = RUN_ERROR**2 + _variance_within(lengths)
    variance = (KNOWN_FROM * 2 * error + squares) / freedom  # of one pair: two runs
    quantile = student.quantile(confidence_for(comparisons), freedom)
    reach = quantile * math.sqrt(variance * (1 / len(logs) + 1 / REPEATED))
    return Interval(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


def _variance_within(groups: Sequence[Sequence[float]]) -> float:
    """Of the logarithms, around the mean of each group."""
    logs = [[math.log(one) for one in group] for group in groups]
    squares = sum((one - statistics.fmean(group)) ** 2 for group in logs for one in group)
    return squares / max(sum(len(group) - 1 for group in logs), 1)
