"""One quantity before and after, with its interval and the outcome that the interval supports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from flatout.model.case import Interval

Outcome = Literal["slower", "faster", "same", "unknown"]
"""`same`: no measurable difference. `unknown`: there are too few steps to decide."""


@dataclass(frozen=True)
class Change:
    """`share` is the relative growth of the time (0.15: 15 % more), `difference_ms` the absolute growth."""

    name: str
    before_ms: float
    after_ms: float
    difference_ms: Interval | None = None
    share: Interval | None = None
    outcome: Outcome = "unknown"


def ratio_change(name: str, before: float, after: float, half_width: float | None) -> Change:
    """For a quantity that is never zero: the interval of the ratio, symmetric in its logarithm."""
    if half_width is None or before <= 0 or after <= 0:
        return Change(name, before, after)
    ratio, factor = after / before, math.exp(half_width)
    share = Interval(ratio - 1, ratio / factor - 1, ratio * factor - 1)
    difference = Interval(after - before, before * share.low, before * share.high)
    return Change(name, before, after, difference, share, _outcome(share))


def difference_change(name: str, before: float, after: float, half_width: float | None) -> Change:
    """For a part, which may be zero on either side: the interval of the difference."""
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
