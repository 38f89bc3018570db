"""Two programs of which two runs alone cannot be compared: do their losses lie as far apart as those of one program?

They draw random numbers which nobody can pin, or rounding alone soon leads them elsewhere. Each side runs with several
seeds. What a run did becomes a few numbers: the mean of each loss in the first and in the second half, and how far the
weights have moved. Each is compared by Welch's test; together they accuse a right program in one case of a hundred. How
small a fault would have been seen is part of the answer: a comparison that would have missed a fifth of the loss has
seen nothing.

What is no number (NaN, infinite) has no part in these means. How much of it there is has to be the same on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flatout.measure import student
from flatout.measure.parity import lacking
from flatout.measure.parity.extent import Extent
from flatout.measure.parity.numbers import Array, Numbers
from flatout.measure.parity.verdict import FAILED, STATISTICAL, UNKNOWN, Agreement, Parity

FEWEST_RUNS = 4
"""Of each side."""
FALSE_ALARMS = 0.01
POWER = 0.9
ROUNDING = 1e-3
"""A shift by this share of a value may come from rounding alone, where all seeds give the same."""
BLUNT = 0.2
"""A shift by this share of a value that would be missed in more than one case of ten makes the comparison worthless."""
NOT_PINNED = "random numbers cannot be pinned"
"""Why two runs alone cannot be compared, where nothing else is said."""


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


def compare(baselines: Sequence[Numbers], trials: Sequence[Numbers], why: str = NOT_PINNED) -> Parity:
    """`why`: two runs alone cannot be compared."""
    count = min(len(baselines), len(trials))
    if count < FEWEST_RUNS:
        return Parity(UNKNOWN, None, f"{why}, and only {count} seeds were tried")
    if len(baselines) != len(trials):
        text = f"{why}, and of {len(baselines)} seeds as it is and {len(trials)} with the change any numbers were seen"
        return Parity(UNKNOWN, None, text)
    for number, (baseline, trial) in enumerate(zip(baselines, trials, strict=True)):
        others = [one for other, one in enumerate(baselines) if other != number]
        if lacks := lacking.of(baseline, trial, others):
            return Parity(FAILED, None, f"{why}; with the change, {lacks}")
    common = _Common.of([*baselines, *trials])
    ours, theirs = ([_summary(one, common) for one in side] for side in (baselines, trials))
    how = f"{why}; over {count} seeds"
    if broken := _without_numbers(ours, theirs):
        return Parity(broken[0], None, f"{how} {broken[1]}")
    found = _shifts([one.values for one in ours], [one.values for one in theirs])
    if not found:
        return Parity(UNKNOWN, None, f"{why}, and no number was seen in all runs")
    worst = max(found, key=lambda one: one.size / one.allowed if one.allowed else math.inf if one.size else 0.0)
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
    extent = _extent([*baselines, *trials])
    far = f"; each run was compared over its first {extent.steps} steps" if extent.steps else ""
    return Parity(STATISTICAL, worst.size, f"{how} {agree}; {seen}{far}", extent)


def _extent(runs: Sequence[Numbers]) -> Extent:
    """Steps and epochs that all runs have come to."""
    steps = min(one.made for one in runs)
    return Extent(steps=steps, epochs=min(sum(1 for begin in one.epochs if begin < steps) for one in runs))


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


@dataclass
class _Summary:
    """Of one run."""

    values: dict[str, float] = field(default_factory=dict)
    no_numbers: dict[str, int] = field(default_factory=dict)
    """By what they are: how many values are NaN or infinite."""

    def add(self, what: str, found: Sequence[float] | Array) -> Array:
        """Those that are numbers."""
        values = np.asarray(found, np.float64)
        known = values[np.isfinite(values)]
        self.no_numbers[what] = values.size - known.size
        return known


def _summary(numbers: Numbers, common: _Common) -> _Summary:
    found = _Summary()
    for name, count in common.values.items():
        calls = numbers.series[name]
        values = [value for call in sorted(calls) for value in calls[call]][:count]
        half = len(values) // 2
        for which, part in (("first", values[:half]), ("second", values[half:])) if half else ():
            what = f"the {which} half of {name}"
            known = found.add(what, part)
            if known.size:
                found.values[what] = float(np.mean(known))
    counts = common.weights
    if len(counts) > 1:
        found.values[f"the movement of the weights in {counts[-1] - counts[0]} steps"] = _movement(numbers, counts)
        last = numbers.weights[counts[-1]].values()
        found.no_numbers["the weights"] = sum(
            max(one.no_numbers, one.sample.size - int(np.isfinite(one.sample).sum())) for one in last
        )
    for name, output in numbers.outputs.items() if not found.values else ():
        known = found.add(name, output)
        if known.size:
            found.values[f"the mean of {name}"] = float(np.mean(known))
            found.values[f"the spread of {name}"] = float(np.std(known))
    return found


def _movement(numbers: Numbers, counts: Sequence[int]) -> float:
    """Of the elements that are numbers at both times."""
    first, last = numbers.weights[counts[0]], numbers.weights[counts[-1]]
    moved = 0.0
    for one in sorted(set(first) & set(last)):
        if first[one].sample.shape == last[one].sample.shape:
            away = last[one].sample.astype(np.float64) - first[one].sample
            moved += float(np.sum(away[np.isfinite(away)] ** 2))
    return math.sqrt(moved)


def _without_numbers(ours: Sequence[_Summary], theirs: Sequence[_Summary]) -> tuple[Agreement, str] | None:
    """What becomes NaN or infinite on one side alone, or more often; what does so by chance cannot be compared."""
    by_chance = ""
    for what in sorted({name for one in (*ours, *theirs) for name in one.no_numbers}):
        here, there = ([one.no_numbers.get(what, 0) for one in side] for side in (ours, theirs))
        if {*here} == {*there} and len({*here}) == 1:
            continue
        if not any(here) or not any(there):
            runs = [f"{sum(map(bool, side))} of {len(side)} runs" for side in (there, here)]
            return FAILED, f"{what} has NaN or infinite values in {runs[0]} with the change, in {runs[1]} without it"
        if len({*here}) == len({*there}) == 1:
            return FAILED, f"{what} has {there[0]} values that are NaN or infinite, where it had {here[0]}"
        by_chance = by_chance or f"{what} has NaN or infinite values in some runs alone: that is no comparison"
    return (UNKNOWN, by_chance) if by_chance else None


def _shifts(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> list[Shift]:
    common = sorted(set.intersection(*map(set, ours), *map(set, theirs)))
    found = []
    for name in common:
        one, other = (np.array([run[name] for run in side]) for side in (ours, theirs))
        # Where the baseline's are all zero, what the others are is no less of a shift.
        scale = abs(float(np.mean(one))) or float(np.max(np.abs([one, other])))
        if not scale:
            continue
        error = math.sqrt(np.var(one, ddof=1) / len(one) + np.var(other, ddof=1) / len(other))
        freedom = min(len(one), len(other)) - 1  # fewer than Welch's: on the safe side
        limit = max(student.quantile(1 - FALSE_ALARMS / len(common), freedom) * error, ROUNDING * scale)
        size = abs(float(np.mean(other)) - float(np.mean(one)))
        visible = limit + student.quantile(2 * POWER - 1, freedom) * error
        found.append(Shift(name, size / scale, limit / scale, visible / scale))
    return found
