"""Several programs compared at once, as a gate does for a build: how often any of them raises a false alarm.

Ten programs have ten chances to look slower by luck. Two things keep the alarms of a build at 5 %:

- **Holm's method.** The program that is most certainly slower has to be so with 1 − 5 % / 10, the next with
  1 − 5 % / 9, and so on; the first that is not ends it.
- **A spread that all of them show.** How far runs of the same program lie apart is hardly known from the runs of one.
  Repeats of all programs are pooled. So are the changes themselves: most programs of a build are as fast as before, so
  how far the changes of the middle ones lie apart is noise. The more programs there are, the less counts the prior.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from flatout.compare import run_spread
from flatout.compare.comparison import Comparison, among_others

PRIOR = 0.04
LEAST_WEIGHT = 2
"""As those of `run_spread`, with many programs: a prior that counts for little."""
FEWEST_CHANGES = 5
"""Changes from which on their own spread is used."""
MIDDLE = 0.7
"""Share of the changes that are nearest to their median: what got slower or faster is among the others."""
WORTH_OF_CHANGE = 0.6
"""Degrees of freedom of each of these: they vary less than others, so they tell less."""
MIDDLE_SHARE = 0.26
"""The mean square of the seven nearest of ten normal values, over their variance."""


def judge_together(found: Sequence[Comparison]) -> list[Comparison]:
    """In the order given, with what each says among the others."""
    usable = [one for one in found if one.step.share is not None]
    if len(usable) < 2:
        return list(found)
    pooled = pooled_spread(usable)
    spreads = {id(one): _at_least(pooled, one.spread) for one in usable}
    order = sorted(usable, key=lambda one: -_certainty(one, spreads[id(one)]))
    judged: dict[int, Comparison] = {}
    left = len(order)
    for one in order:
        judged[id(one)] = among_others(one, spreads[id(one)], len(order), left)
        # What comes after the first that is not certain is judged as it was.
        left -= (judged[id(one)].least or 0.0) > 0 and left > 1
    return [judged.get(id(one), one) for one in found]


def pooled_spread(found: Sequence[Comparison]) -> run_spread.Spread:
    """Of a run around its program, as all of them show it."""
    weight = max(run_spread.PRIOR_WEIGHT / len(found), LEAST_WEIGHT)
    repeats = sum(one.spread.repeats for one in found)
    squares = sum(one.spread.repeats * one.spread.seen**2 for one in found)
    freedom, variance = _of_changes(found)
    total = weight + repeats + freedom
    mixed = (weight * PRIOR**2 + squares + freedom * variance) / total
    return run_spread.Spread(math.sqrt(mixed), total, repeats, math.sqrt(squares / repeats) if repeats else 0.0)


def _of_changes(found: Sequence[Comparison]) -> tuple[float, float]:
    """Degrees of freedom, and the variance of one run, from how far the changes in the middle lie apart."""
    if len(found) < FEWEST_CHANGES:
        return 0.0, 0.0
    logs = [math.log(one.step.after_ms / one.step.before_ms) for one in found]
    scales = [math.sqrt(1 / len(one.before) + 1 / len(one.after)) for one in found]
    middle = statistics.median(logs)
    off = sorted(abs(log - middle) / scale for log, scale in zip(logs, scales, strict=True))
    kept = off[: math.ceil(MIDDLE * len(off))]
    return WORTH_OF_CHANGE * (len(kept) - 1), statistics.fmean(value**2 for value in kept) / MIDDLE_SHARE


def _at_least(pooled: run_spread.Spread, own: run_spread.Spread) -> run_spread.Spread:
    """A program whose own runs lie farther apart than those of the others keeps its own spread."""
    return replace(pooled, share=max(pooled.share, own.share))


def _certainty(one: Comparison, spread: run_spread.Spread) -> float:
    change = math.log(one.step.after_ms / one.step.before_ms)
    return change / max(spread.half_width(len(one.before), len(one.after), 0.9), 1e-9)
