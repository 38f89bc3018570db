"""Two programs that draw random numbers which nobody can pin: do their losses lie as far apart as those of one program?

Each side runs with several seeds. What a run did becomes a few numbers: the mean of each loss in the first and in the
second half, and how far the weights have moved. Each is compared by Welch's test; together they accuse a right
program in one case of a hundred. How small a fault would have been seen is part of the answer: a comparison that would
have missed a fifth of the loss has seen nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flatout.measure import student
from flatout.measure.parity.numbers import Numbers
from flatout.measure.parity.verdict import FAILED, STATISTICAL, UNKNOWN, Parity

FEWEST_RUNS = 4
"""Of each side."""
FALSE_ALARMS = 0.01
POWER = 0.9
ROUNDING = 1e-3
"""A shift by this share of a value may come from rounding alone, where all seeds give the same."""
BLUNT = 0.2
"""A shift by this share of a value that would be missed in more than one case of ten makes the comparison worthless."""


@dataclass(frozen=True)
class Shift:
    """How far one number of the runs lies from the baseline's."""

    what: str
    size: float
    """Against the baseline's mean."""
    allowed: float
    """What chance explains."""
    visible: float
    """The smallest one that would have been seen with the power of `POWER`."""


def compare(baselines: Sequence[Numbers], trials: Sequence[Numbers]) -> Parity:
    count = min(len(baselines), len(trials))
    if count < FEWEST_RUNS:
        return Parity(UNKNOWN, None, f"the random numbers cannot be pinned, and only {count} seeds were tried")
    common = _Common.of([*baselines, *trials])
    found = _shifts([_summary(one, common) for one in baselines], [_summary(one, common) for one in trials])
    if not found:
        return Parity(UNKNOWN, None, "the random numbers cannot be pinned, and no number was seen in all runs")
    worst = max(found, key=lambda one: one.size / one.allowed if one.allowed else math.inf if one.size else 0.0)
    how = f"random numbers cannot be pinned; over {count} seeds"
    if worst.size > worst.allowed:
        apart = f"{worst.what} differs by {worst.size:.2g}, where chance gives {worst.allowed:.2g}"
        return Parity(FAILED, worst.size, f"{how} {apart}")
    sharp = [one for one in found if one.visible <= BLUNT]
    if not sharp:
        least = min(one.visible for one in found)
        return Parity(UNKNOWN, None, f"{how} only a shift by {least:.0%} would be seen: that is no comparison")
    bluntest = max(sharp, key=lambda one: one.visible)
    seen = f"a shift by {bluntest.visible:.1%} would have been seen in 9 of 10 cases"
    agree = "1 value agrees" if len(sharp) == 1 else f"{len(sharp)} values agree"
    return Parity(STATISTICAL, worst.size, f"{how} {agree}; {seen}")


@dataclass(frozen=True)
class _Common:
    """How far all runs have come: one that is faster has made more steps in the same time."""

    values: dict[str, int]
    """Of each series."""
    weights: tuple[int, ...]
    """Steps after which all runs have kept their weights."""

    @classmethod
    def of(cls, runs: Sequence[Numbers]) -> _Common:
        names = set.intersection(*(set(one.series) for one in runs))
        values = {name: min(sum(map(len, one.series[name].values())) for one in runs) for name in names}
        kept = set.intersection(*(set(one.weights) for one in runs))
        return cls(values, tuple(sorted(kept)))


def _summary(numbers: Numbers, common: _Common) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, count in common.values.items():
        calls = numbers.series[name]
        values = [value for call in sorted(calls) for value in calls[call]][:count]
        half = len(values) // 2
        if half:
            found[f"the first half of {name}"] = float(np.mean(values[:half]))
            found[f"the second half of {name}"] = float(np.mean(values[half:]))
    counts = common.weights
    if len(counts) > 1:
        first, last = numbers.weights[counts[0]], numbers.weights[counts[-1]]
        moved = [
            float(np.sum((last[one].sample.astype(np.float64) - first[one].sample) ** 2))
            for one in sorted(set(first) & set(last))
            if first[one].sample.shape == last[one].sample.shape
        ]
        found[f"the movement of the weights in {counts[-1] - counts[0]} steps"] = math.sqrt(sum(moved))
    for name, output in numbers.outputs.items() if not found else ():
        found[f"the mean of {name}"] = float(np.mean(output))
        found[f"the spread of {name}"] = float(np.std(output))
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _shifts(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> list[Shift]:
    common = sorted(set.intersection(*map(set, ours), *map(set, theirs)))
    found = []
    for name in common:
        one, other = (np.array([run[name] for run in side]) for side in (ours, theirs))
        scale = abs(float(np.mean(one)))
        if not scale:
            continue
        error = math.sqrt(np.var(one, ddof=1) / len(one) + np.var(other, ddof=1) / len(other))
        freedom = min(len(one), len(other)) - 1  # fewer than Welch's: on the safe side
        limit = max(student.quantile(1 - FALSE_ALARMS / len(common), freedom) * error, ROUNDING * scale)
        size = abs(float(np.mean(other)) - float(np.mean(one)))
        visible = limit + student.quantile(2 * POWER - 1, freedom) * error
        found.append(Shift(name, size / scale, limit / scale, visible / scale))
    return found
