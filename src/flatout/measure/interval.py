"""The interval of a ratio from paired rounds: median of the log-ratios, exact sign-test bounds.

Nothing is assumed about the noise except that rounds are independent and either side is as likely to be disturbed. With
n rounds, the order statistics that bound the median at the wanted confidence follow from the binomial distribution;
fewer than six rounds cannot give 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flatout.model.case import Interval


def paired_ratio(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Interval:
    """How many times longer `before` takes than `after`: above 1, `after` is faster."""
    if len(before) != len(after):
        raise ValueError(f"Rounds come in pairs: {len(before)} before, {len(after)} after.")
    logs = sorted(math.log(b / a) for b, a in zip(before, after, strict=True))
    if not logs:
        raise ValueError("At least one round is needed.")
    rank = _rank(len(logs), confidence)
    low, high = (logs[rank], logs[-1 - rank]) if rank is not None else (-math.inf, math.inf)
    return Interval(math.exp(_median(logs)), math.exp(low), math.exp(high))


def rounds_needed(confidence: float) -> int:
    """The fewest rounds whose extremes bound the median at this confidence."""
    return next(count for count in range(2, 64) if _rank(count, confidence) is not None)


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _rank(count: int, confidence: float) -> int | None:
    """The largest k such that the k-th smallest and k-th largest value enclose the median often enough."""
    tail, best = 0.0, None
    for k in range(count // 2):
        tail += math.comb(count, k) / 2**count
        if 2 * tail > 1 - confidence:
            break
        best = k
    return best
