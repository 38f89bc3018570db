"""Losses that are the same thing under two names: the target of an eager tape, and what a traced step returns.

A lever that traces the step hides the tape; its loss comes out as the result of a function that the baseline does not
have. They are paired by the step they belong to, where the first ones are the same: what differs from then on is a
difference.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.measure.parity.distances import relative
from flatout.measure.parity.numbers import Numbers

FEWEST = 4
"""Steps that both must have seen."""
SAME = 1e-3
"""Relative: up to which the first ones of a pair may differ."""
FIRST = 2

ByStep = dict[int, float]


def paired(baseline: Numbers, trial: Numbers) -> Iterator[tuple[str, ByStep, ByStep]]:
    """What it is, and its values by step, for series whose name one of the runs lacks, or has soon ceased to use."""
    theirs = {name: found for name in trial.calls if name not in baseline.calls and (found := _by_step(trial, name))}
    for name in sorted(baseline.calls):
        ours = _by_step(baseline, name)
        if name in trial.calls and _last(trial, name) * 2 > _last(baseline, name):
            continue
        aligned = ((other, _aligned(ours, values)) for other, values in theirs.items())
        pairs = [(other, *pair) for other, pair in aligned if pair is not None]
        if pairs:
            best, mine, its = max(pairs, key=lambda item: len(item[1]))
            yield f"{name}, {best}", mine, its


def _by_step(numbers: Numbers, name: str) -> ByStep:
    """Where a step has one value."""
    calls = numbers.calls[name]
    steps = [made for made, _ in calls]
    return dict(calls) if len(set(steps)) == len(steps) else {}


def _last(numbers: Numbers, name: str) -> int:
    return max((made for made, _ in numbers.calls[name]), default=0)


def _aligned(ours: ByStep, theirs: ByStep) -> tuple[ByStep, ByStep] | None:
    """A tape is asked before the step is counted; a function may have returned before or after that."""
    for later in (0, 1):
        shifted = {made - later: value for made, value in theirs.items()}
        both = sorted(set(ours) & set(shifted))
        near = (relative(ours[step], shifted[step], 0.0) <= SAME for step in both[:FIRST])
        if len(both) >= FEWEST and all(near):
            return {step: ours[step] for step in both}, {step: shifted[step] for step in both}
    return None
