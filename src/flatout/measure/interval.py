"""The interval of a ratio from paired rounds: the median of the log-ratios between exact sign-test bounds.

**One baseline.** Round i gives one value, rᵢ = log(before ᵢ / after ᵢ): both sides ran within the same second, so what
the machine did to both falls out. Nothing is assumed of the noise except that rounds are independent and that their
values have the common median m. The number of values below m is then binomial with n trials of chance 1/2, and the
interval from the (k+1)-th smallest to the (k+1)-th largest value misses m with the probability

    2 · Σ C(n, j) / 2ⁿ   over j = 0 … k

The largest k for which that is at most 1 − confidence gives the tightest bounds. For k = 0 (the extremes) it is
2 / 2ⁿ: six rounds are the fewest for 95 %, and with fewer the interval is unbounded. A mean would be narrower on a
quiet machine, and wrong where one round in ten is three times as long.

**Several comparisons.** c contestants have c chances to look good by luck. Each is given the confidence 1 − 0.05 / c
(Bonferroni), so that all intervals of a race hold together with 95 %.

**Several baselines.** Two processes of the same program differ by some percent: other addresses, another placement of
threads. More rounds do not average that out, and an interval from one baseline does not contain it. So two baselines
run in each round, each is compared with the contestant, and `envelope` combines them: the ratio is the geometric mean
of the two, the bounds are the outermost of both. What the baselines differ by between themselves thus widens the
interval, and a win is one against each of them. Dividing by the mean of both baselines instead would give a narrower
interval that hides the difference; publishing one of the two ratios would pick the luckier process.

**Repeated looks.** A race looks after each round and stops when it is decided, which gives luck more than one chance.
What bounds this is that a win must lie beyond `race.WORTH` against each baseline. Of 800 simulated races between equal
programs (each process off by a normal error of its own for good, each block by another), so many were called a win:

    error of a process / of a block    one baseline    two
    0 %  /  5 %                           0.5 %        0 %
    0 %  / 30 %                           3.9 %        0.1 %
    1 %  /  1 %                           1.3 %        0 %
    2 %  /  1 %                           9.3 %        3.4 %
    2 %  / 30 %                           3.9 %        0.3 %

The claims of `tune` and `optimize`, whose contestants are processes, are therefore made against two baselines, and from
processes that are started anew: `race.processes` makes their intervals, `docs/method.md` has how often they hold. The
screening of `optimize` and its other batch sizes have one, so small gains there are less sure. Within one process
(`data`, `compress`) there is no error of a process to guard against: in the simulation one baseline stays below 5 %.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence

from flatout.model.case import Interval

CONFIDENCE = 0.95
"""Of all intervals of a race together."""


def paired_ratio(before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """How many times longer `before` takes than `after`: above 1, `after` is faster."""
    if len(before) != len(after):
        raise ValueError(f"Rounds come in pairs: {len(before)} before, {len(after)} after.")
    logs = sorted(math.log(b / a) for b, a in zip(before, after, strict=True))
    if not logs:
        raise ValueError("At least one round is needed.")
    rank = _rank(len(logs), confidence)
    low, high = (logs[rank], logs[-1 - rank]) if rank is not None else (-math.inf, math.inf)
    return Interval(math.exp(statistics.median(logs)), math.exp(low), math.exp(high))


def confidence_for(comparisons: int) -> float:
    """The confidence of one interval, so that all of this many hold together with 95 %."""
    return 1 - (1 - CONFIDENCE) / max(comparisons, 1)


def rounds_needed(confidence: float) -> int:
    """The fewest rounds whose extremes bound the median at this confidence."""
    return next(count for count in range(2, 64) if _rank(count, confidence) is not None)


def envelope(intervals: Sequence[Interval]) -> Interval:
    """One interval of the same contestant against several baselines; see the module's docstring."""
    ratio = math.exp(statistics.fmean(math.log(one.ratio) for one in intervals))
    return Interval(ratio, min(one.low for one in intervals), max(one.high for one in intervals))


def is_bounded(interval: Interval) -> bool:
    """Whether there were enough rounds to say anything about the ends."""
    return interval.low > 0 and not math.isinf(interval.high)


@functools.cache
def _rank(count: int, confidence: float) -> int | None:
    """The largest k for which k + 1 values from either end enclose the median often enough."""
    tail, best = 0.0, None
    for k in range(count // 2):
        tail += math.comb(count, k) / 2**count
        if 2 * tail > 1 - confidence:
            break
        best = k
    return best
