"""The interval of a ratio that holds for other processes of the same programs, not only for those that ran.

Two processes of one program differ by some percent for as long as they live: other addresses, another placement of
threads. Rounds do not average that out. So a claim is made from several **groups** of rounds, and between two groups
everything is started anew. In each group a contestant has one **level**: the median, over its rounds, of the logarithm
of its time against the mean of the baselines in the same round. Where the steps of a program differ from each other
(episodes, replay), it is the logarithm of the sums of both: every group runs the same steps, and a lever may make some
of them a hundred times as fast and others not at all. The levels are fitted by least squares,

    level = group + contestant + error of the process

where all baselines are the same contestant. The group takes out what the machine did meanwhile, and the error of a
process is drawn anew at each start. What the fit leaves over is how far processes lie apart: between the baselines of
a group, and between the groups of each contestant. All of it is pooled, because each contestant alone has too few
starts to tell. For that the levels of all groups have to be as precise: each is taken from as many rounds as the
shortest group has. Three groups of two baselines and two contestants leave seven degrees of freedom; the interval is
Student's with as many. Where the groups of one contestant lie farther apart than that, its own spread counts for it:
a lever may make a program less even. The noise of the blocks is part of the levels, so it is in there as well.

Where there are fewer than `FEWEST_FREEDOM` degrees of freedom (there was no time to start anything anew), an error of
`PRIOR` is assumed for those that are missing. `docs/method.md` has the coverage, `benchmarks/coverage.py` measures it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flatout.measure import student
from flatout.model.case import Interval

if TYPE_CHECKING:
    from flatout.measure.race.contestant import Contestant

PRIOR = 0.04
"""Standard deviation of the logarithm of a process's time, as in `measure.pairs`."""
FEWEST_FREEDOM = 4


@dataclass(frozen=True)
class Spread:
    """How far processes of the same program lie apart: a standard deviation, in logarithms."""

    share: float
    freedom: int


@dataclass(frozen=True)
class Fit:
    spread: Spread
    found: dict[int, tuple[float, float]]
    """By the id of a contestant: the logarithm of its ratio, and by what the spread is multiplied for its error."""
    own: dict[int, float]
    """The error by its own groups alone, where it has several."""

    def interval(self, one: Contestant, confidence: float) -> Interval | None:
        """How many times longer the baselines take; None where it has run in no round with them."""
        if id(one) not in self.found:
            return None
        log, factor = self.found[id(one)]
        error = max(factor * self.spread.share, self.own.get(id(one), 0.0))
        reach = student.quantile(confidence, self.spread.freedom) * error
        return Interval(math.exp(log), math.exp(log - reach), math.exp(log + reach))

    def widened(self, interval: Interval, confidence: float) -> Interval:
        """The interval of one process against another, as it holds for other processes of both."""
        reach = math.sqrt(2) * student.quantile(confidence, self.spread.freedom) * self.spread.share
        low, high = (math.log(end / interval.ratio) for end in (interval.low, interval.high))
        ends = (interval.ratio * math.exp(sign * math.hypot(end, reach)) for sign, end in ((-1, low), (1, high)))
        return Interval(interval.ratio, *ends)


def fit(
    baselines: Sequence[Contestant],
    contestants: Sequence[Contestant],
    groups: Sequence[int],
    known: Sequence[float] = (),
) -> Fit:
    """`groups`: the rounds with which the groups begin; `known`: further differences between two baselines."""
    import numpy as np

    rows = _levels(baselines, contestants, groups)
    begun = sorted({group for group, _, _ in rows})
    raced = [one for one in contestants if any(who is one for _, who, _ in rows)]
    columns = len(begun) + len(raced)
    squares, freedom = sum(e**2 / 2 for e in known), len(known)
    found, own = {}, {}
    if raced:
        design: Any = np.zeros((len(rows), columns))
        for number, (group, who, _) in enumerate(rows):
            design[number, begun.index(group)] = 1.0
            if who is not None:
                design[number, len(begun) + next(i for i, one in enumerate(raced) if one is who)] = 1.0
        levels = np.array([level for _, _, level in rows])
        inverse = np.linalg.inv(design.T @ design)
        fitted = inverse @ design.T @ levels
        squares += float(((levels - design @ fitted) ** 2).sum())
        freedom += len(rows) - columns
        for number, one in enumerate(raced, len(begun)):
            found[id(one)] = (-float(fitted[number]), math.sqrt(float(inverse[number, number])))
            mine = [level for _, who, level in rows if who is one]
            own[id(one)] = statistics.stdev(mine) / math.sqrt(len(mine)) if len(mine) > 1 else 0.0
    missing = max(FEWEST_FREEDOM - freedom, 0)
    variance = (squares + missing * PRIOR**2) / (freedom + missing)
    return Fit(Spread(math.sqrt(variance), freedom + missing), found, own)


def apart(baselines: Sequence[Contestant], groups: Sequence[int], rounds: int) -> list[float]:
    """By how much two baselines differ in each group, as logarithms: what later fits may know beforehand.

    `rounds`: of each group.
    """
    found = []
    for group in range(len(groups)):
        levels = [level for number, _, level in _levels(baselines, (), groups, rounds) if number == group]
        found += [levels[0] - levels[1]] if len(levels) == 2 else []
    return found


def _levels(
    baselines: Sequence[Contestant], contestants: Sequence[Contestant], groups: Sequence[int], most: int | None = None
) -> list[tuple[int, Contestant | None, float]]:
    """(group, contestant, level); the contestant is None for a baseline."""
    base = [[_log(time) for time in one.unit_times()] for one in baselines]
    own = [[_log(time) for time in one.unit_times()] for one in contestants]
    rounds = max(map(len, base), default=0)
    varies = any(one.varies for one in baselines)
    rows: list[tuple[int, Contestant | None, float]] = []
    ends = [*groups[1:], rounds]
    most = most or min((end - begin for begin, end in zip(groups, ends, strict=True) if end > begin), default=0)
    for group, (begin, end) in enumerate(zip(groups, ends, strict=True)):
        there = [times for times in base if 2 * _count(times[begin:end]) > end - begin]
        middle = [_mean([times[i] for times in there if i < len(times)], len(there)) for i in range(begin, end)]
        for times in there:
            level = _level(times[begin:end], middle, most, varies)
            rows += [(group, None, level)] if level is not None else []
        for one, times in zip(contestants, own, strict=True):
            if begin < one.counts_from:
                continue
            level = _level(times[begin:end], middle, most, varies)
            rows += [(group, one, level)] if level is not None else []
    return rows


def _level(
    times: Sequence[float | None], middle: Sequence[float | None], most: int, varies: bool = False
) -> float | None:
    found = [(t, m) for t, m in zip(times, middle, strict=False) if t is not None and m is not None][:most]
    if varies and found:
        return math.log(sum(math.exp(t) for t, _ in found) / sum(math.exp(m) for _, m in found))
    return statistics.median(t - m for t, m in found) if found else None


def _mean(logs: Sequence[float | None], count: int) -> float | None:
    """None where one is missing: the mean of others is another one."""
    known = [log for log in logs if log is not None]
    return statistics.fmean(known) if count and len(known) == count else None


def _count(times: Sequence[float | None]) -> int:
    return sum(time is not None for time in times)


def _log(time: float | None) -> float | None:
    return math.log(time) if time is not None else None
