"""One quantity before and after, and what its interval allows to say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from flatout.model.case import Interval

Outcome = Literal["slower", "faster", "same", "unknown"]
"""`same` is short for: no measurable difference. `unknown`: there is too little to tell."""


@dataclass(frozen=True)
class Change:
    """`share` is by how much of itself the time grew (0.15: 15 % more), `difference_ms` by how many milliseconds."""

    name: str
    before_ms: float
    after_ms: float
    difference_ms: Interval | None = None
    share: Interval | None = None
    outcome: Outcome = "unknown"


def of_ratio(name: str, before: float, after: float, half_width: float | None) -> Change:
    """For what is never nothing: the interval of a ratio, symmetric in its logarithm."""
    if half_width is None or before <= 0 or after <= 0:
        return Change(name, before, after)
    ratio, factor = after / before, math.exp(half_width)
    share = Interval(ratio - 1, ratio / factor - 1, ratio * factor - 1)
    difference = Interval(after - before, before * share.low, before * share.high)
    return Change(name, before, after, difference, share, _outcome(share))


def of_difference(name: str, before: float, after: float, half_width: float | None) -> Change:
    """For a part, which may be nothing on either side: the interval of the difference."""
    if half_width is None:
        return Change(name, before, after)
    difference = Interval(after - before, after - before - half_width, after - before + half_width)
    share = None
    if before > 0:
        share = Interval(difference.ratio / before, difference.low / before, difference.high / before)
    return Change(name, before, after, difference, share, _outcome(difference))


def _outcome(interval: Interval) -> Outcome:
    if interval.low > 0:
        return "slower"
    return "faster" if interval.high < 0 else "same"
