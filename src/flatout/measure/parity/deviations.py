"""How far two runs are apart: weights against how far they have moved, losses and outputs against their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from flatout.measure.parity.distances import distance, movement, ratio, relative, size
from flatout.measure.parity.numbers import EVALUATION, OUTPUTS, Numbers, Weights
from flatout.measure.parity.pairing import paired

Kind = Literal["weights", "losses", "outputs"]
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Deviation:
    """How far apart one thing is after some steps."""

    kind: Kind
    what: str
    """Which of that kind."""
    steps: int
    value: float
    scale: float = 1.0
    """What the difference was held against."""
    no_number: bool = False
    """There is no number on either side (NaN, infinite): they are equal, and that shows little."""

    @property
    def key(self) -> Key:
        return self.kind, self.what, self.steps


def deviations(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    """What both have seen at the same number of steps."""
    trains = False
    for steps in sorted(set(baseline.weights) & set(trial.weights)):
        value = _of_weights(baseline, trial, steps)
        if value is not None:
            trains = True
            yield Deviation("weights", "weights", steps, value)
    for name in sorted(set(baseline.series) & set(trial.series)):
        if trains and name.startswith(OUTPUTS):
            continue  # what a model under training puts out follows from its weights, in whatever calls
        yield from of_losses(baseline, trial, name)
    for name, ours, theirs in paired(baseline, trial):
        for steps in sorted(ours):
            yield Deviation("losses", name, max(steps, 1), relative(ours[steps], theirs[steps], 0.0))
    if not trains:
        yield from of_outputs(baseline, trial)


def of_losses(baseline: Numbers, trial: Numbers, name: str, kind: Kind = "losses") -> Iterator[Deviation]:
    """One series, at each step that both have."""
    mine, other = values_alike(baseline, trial, name)
    sizes = {step: [abs(value) for value in values if math.isfinite(value)] for step, values in mine.items()}
    usual = float(np.median([value for found in sizes.values() for value in found] or [0]))
    for step in sorted(set(mine) & set(other)):
        value = max(relative(a, b, usual) for a, b in zip(mine[step], other[step], strict=False))
        yield Deviation(kind, name, step, value, max([*sizes[step], usual]), not sizes[step] and value == 0.0)


def of_outputs(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    """As far as both have put them out."""
    pairs = [(name, name) for name in sorted(set(baseline.outputs) & set(trial.outputs))]
    if not pairs and len(baseline.outputs) == len(trial.outputs) == 1:
        pairs = [(next(iter(baseline.outputs)), next(iter(trial.outputs)))]  # a model that is called by a function now
    for name, other_name in pairs:
        length = min(len(baseline.outputs[name]), len(trial.outputs[other_name]))
        if length:
            ours, theirs = baseline.outputs[name][:length], trial.outputs[other_name][:length]
            yield Deviation("outputs", name, 1, ratio(distance(ours, theirs), size(ours)))


def shown(baseline: Numbers, trial: Numbers) -> bool:
    """Whether losses were compared over most of the steps of which weights were, where the baseline has losses: a lever
    takes hold after some steps, and losses from before that show nothing."""
    found = list(deviations(baseline, trial))
    weights = max((one.steps for one in found if one.kind == "weights"), default=0)
    losses = max((one.steps for one in found if one.kind == "losses"), default=0)
    return not weights or not baseline.series or 2 * losses >= min(weights, _last_loss(baseline))


def _last_loss(numbers: Numbers) -> int:
    return max((made for calls in numbers.calls.values() for made, _ in calls), default=0)


MORE_CALLS = 0.25
"""Where two runs make more calls in the same steps than this, beyond what the end of a block cuts off, they make
another number of calls in a step."""


def values_alike(baseline: Numbers, trial: Numbers, name: str) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """What each of the calls gave; where a step of one makes more calls than a step of the other (a loop over samples
    that became one call for the batch), the mean of each step, or the sum, whichever is nearer. Of an evaluation, the
    last: each of its batches shows the mean of all so far."""
    calls = [_counted(numbers.calls.get(name, [])) for numbers in (baseline, trial)]
    ours, theirs = map(_by_step, calls)
    both = sorted(set(ours) & set(theirs))
    one_each = bool(both) and np.median([len(ours[step]) / len(theirs[step]) for step in both]) == 1
    if not both or one_each or _as_many(*calls):
        return baseline.series[name], trial.series[name]
    reduced = []
    for reduce in (_last,) if name.startswith(EVALUATION) else (np.mean, np.sum):
        pair = [{step: [float(reduce(found[step]))] for step in both} for found in (ours, theirs)]
        apart = max(relative(pair[0][step][0], pair[1][step][0], 0.0) for step in both)
        reduced.append((apart, pair))
    _, (mine, other) = min(reduced, key=lambda item: item[0])
    return mine, other


def _last(values: list[float]) -> float:
    return values[-1]


def _counted(calls: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Without those before the first update, until which calls may be counted as steps."""
    return calls[max((i for i in range(1, len(calls)) if calls[i][0] < calls[i - 1][0]), default=0) :]


def _as_many(ours: list[tuple[int, float]], theirs: list[tuple[int, float]]) -> bool:
    """Whether both make as many calls in the same steps. One may show its steps several at a time."""
    last = min(calls[-1][0] for calls in (ours, theirs))
    mine, other = (sum(1 for made, _ in calls if made < last) for calls in (ours, theirs))
    return other > 0 and abs(mine / other - 1) < MORE_CALLS


def _by_step(calls: list[tuple[int, float]]) -> dict[int, list[float]]:
    """What the calls of each whole step gave."""
    found: dict[int, list[float]] = {}
    for made, value in calls:
        found.setdefault(made, []).append(value)
    if found:
        del found[max(found)]  # it may have been cut off
    return {step: values for step, values in found.items() if step}


def _of_weights(baseline: Numbers, trial: Numbers, steps: int) -> float | None:
    """The deviation that nine tenths of the elements stay below; None where nothing has moved in either."""
    others = sorted(count for count, found in baseline.weights.items() if count != steps and found)
    if not others:
        return None
    before = baseline.weights[others[0]]
    ours, theirs = baseline.weights[steps], trial.weights[steps]
    rows: list[tuple[float, int]] = []
    for number in sorted(set(ours) & set(theirs) & set(before)):
        one, other, start = ours[number], theirs[number], before[number]
        if not one.sample.shape == other.sample.shape == start.sample.shape:
            continue
        if math.isinf(_apart(one, other)):
            return math.inf  # however small the variable is: rounding does not do that
        moved = _moved(one, (baseline.weights[count].get(number) for count in others))
        value = of_variable(one, other, moved)
        if moved or value or one.no_numbers:
            rows.append((value, one.sample.size))
    if not rows:
        return None
    rows.sort()
    total = sum(elements for _, elements in rows)
    below = 0
    for value, elements in rows:
        below += elements
        if below >= 0.9 * total:
            # A rest that differs is never called exact.
            return value or min(rows[-1][0], np.finfo(np.float32).tiny.item())
    return rows[-1][0]


def _moved(one: Weights, at_others: Iterable[Weights | None]) -> float:
    """How far a variable is from where it was first seen. Where several optimizers take turns, it may not have moved
    since: then from where it is seen next, as rounding differs by infinitely more than nothing."""
    same = (other for other in at_others if other is not None and other.sample.shape == one.sample.shape)
    return next(filter(None, (movement(one.sample, other.sample) for other in same)), 0.0)


def _apart(one: Weights, other: Weights) -> float:
    """By their samples; infinite where elements are numbers in one of both alone."""
    return math.inf if one.no_numbers != other.no_numbers else distance(one.sample, other.sample)


def of_variable(one: Weights, other: Weights, moved: float) -> float:
    """How far a variable is apart against how far it has moved. Where elements differ that are not in the sample, that
    is never nothing."""
    if one.checksum == other.checksum and one.name == other.name:
        return 0.0
    return max(ratio(_apart(one, other), moved), float(np.finfo(np.float32).tiny))


STRETCHED = 1e-4
"""Rounding makes less than this of the length of the steps, in their very direction."""
UNEXPLAINED = 0.3
"""Of a deviation: what its part along the movement may leave."""


def stretch(baseline: Numbers, trial: Numbers) -> float | None:
    """By how much the updates of the trial are longer or shorter than the baseline's, where the weights differ by
    nothing else: a gradient or a learning rate that was scaled. None where they do not."""
    both = sorted(set(baseline.weights) & set(trial.weights))
    counts = [count for count in both if baseline.weights[count] and trial.weights[count]][:2]
    if len(counts) < 2:
        return None
    moves, aparts = [], []
    samples = [side[count] for side in (baseline.weights, trial.weights) for count in counts]
    for number in sorted(set.intersection(*map(set, samples))):
        one, two, other, another = (found[number].sample.astype(np.float64).ravel() for found in samples)
        if one.shape == two.shape == other.shape == another.shape:
            numbers = np.isfinite(one) & np.isfinite(two) & np.isfinite(other) & np.isfinite(another)
            moves.append((two - one)[numbers])
            aparts.append(((another - other) - (two - one))[numbers])
    if not moves:
        return None
    moved, apart = np.concatenate(moves), np.concatenate(aparts)
    length = float(moved @ moved)
    if not length or not math.isfinite(length):
        return None
    along = float(apart @ moved) / length
    rest = float(np.linalg.norm(apart - along * moved))
    return 1 + along if abs(along) > STRETCHED and rest < UNEXPLAINED * float(np.linalg.norm(apart)) else None
