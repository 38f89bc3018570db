"""Two runs with the same random numbers, compared over all that was seen of the training, before anything is claimed.

Here nothing is left to a rule of thumb about how far right programs drift apart. What is more than a few roundings is
held against what this very program makes of rounding: a second run of it, and one whose weights begin some roundings
apart (`perturbed`). Each variable is compared by itself, trained or not (statistics, averages, slots of optimizers,
metrics, networks that follow another), and each loss with that of the same step. A thing is left out only from the step
on from which rounding alone makes it differ so far that nothing can be told of it, and the sentence says so.

`benchmarks/mutations.py` shows what is caught so, and that right changes pass.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flatout.measure.parity import lacking, outputs
from flatout.measure.parity.deviations import Deviation, Key, Kind, of_losses, of_outputs, of_variable, stretch
from flatout.measure.parity.distances import by, movement, ratio, size
from flatout.measure.parity.extent import Extent
from flatout.measure.parity.numbers import OUTPUTS, Numbers, Weights, is_loss
from flatout.measure.parity.verdict import EXACT, FAILED, LIMITS, PRECISION, REASSOCIATED, UNKNOWN, Agreement, Parity

WIDER = 8.0
"""A trial may differ by this many times what rounding makes of the program."""
SOONER, AT_LEAST = 1.5, 8
"""What rounding makes by so many times a step, or some steps later, is allowed at that step: where a decision turns on
the last digit, it does so sooner in one run than in another."""
ROUNDING = {"weights": 2e-5, "losses": 1e-5, "outputs": 1e-5}
"""What is a few roundings, whatever the program, after one step; it grows with the root of the steps, but for outputs
of a program that does not train."""
LEAST_OF_SIZE = {"weights": 1e-5, "states": 1e-2}
"""Of a variable's size: what its movement is taken for at least. A variable that has not moved is held against its
size; what is not trained, such as a metric that begins anew, may come back to where it was."""
FEWEST_LOSSES = 10
"""Of the same steps in both, where the program has as many at all. With fewer, nothing is shown."""


def compare(baseline: Numbers, trial: Numbers, twin: Numbers | None = None, perturbed: Numbers | None = None) -> Parity:
    """What differs in `twin`, a second run of the baseline, or in `perturbed`, is no fault of the trial."""
    lacks = lacking.of(baseline, trial, [one for one in (twin, perturbed) if one is not None])
    if lacks:
        return Parity(FAILED, None, lacks)
    if not _count_alike(baseline, trial):
        return Parity(UNKNOWN, None, "one of the two runs was stopped before its training began")
    found = list(_deviations(baseline, trial))
    if not found or not (any(one.kind != "weights" for one in found) or _moves(baseline)):
        return Parity(UNKNOWN, None, "no number was seen in both")
    noise = _noise([list(_deviations(baseline, other)) for other in (twin, perturbed) if other is not None])
    allowed = {one.key: _allowed(one, noise) for one in found}
    decided = [one for one in found if allowed[one.key] is not None]
    extent = _extent(baseline, trial, found, decided)
    if not decided:
        return Parity(UNKNOWN, None, "rounding alone makes the program differ from itself from its first steps on")
    seen = sum(len(values) for name, values in baseline.series.items() if is_loss(name))
    verdict, worst = _verdict(found, allowed)
    extent = replace(extent, few=extent.losses < min(FEWEST_LOSSES, seen // 2) and not _outputs_only(decided))
    if extent.few and verdict in (EXACT, REASSOCIATED):  # what differs does so, whatever else was seen
        why = ", as rounding alone changes the others as much" if extent.until is not None else ""
        return Parity(UNKNOWN, None, f"only {extent.losses} of {seen} losses could be compared one by one{why}")
    stride = stretch(baseline, trial) if verdict == REASSOCIATED else None
    if stride is not None and (twin is None or stretch(baseline, twin) is None):
        return Parity(FAILED, abs(stride - 1), f"each update is {stride:.5g} times as large as the baseline's", extent)
    beyond = [one for one in decided if one.value > (allowed[one.key] or 0.0)] if verdict != EXACT else []
    apart = min(beyond, key=lambda one: (one.steps, one.kind != "losses"), default=None)
    return Parity(verdict, worst.value, _sentence(extent, worst, verdict, decided), extent, apart)


def _verdict(found: list[Deviation], allowed: dict[Key, float | None]) -> tuple[Agreement, Deviation]:
    """With what decides it. What nothing can be told of decides nothing, but where it differs no run is the same bit
    for bit."""
    by_allowed = {one: one.value / (limit or 1.0) for one in found if (limit := allowed[one.key]) is not None}
    beyond = [one for one in by_allowed if one.value > (allowed[one.key] or 0.0)]
    if not beyond:
        same = all(one.value == 0.0 for one in found)
        return (EXACT if same else REASSOCIATED), max(by_allowed, key=lambda one: by_allowed[one])
    wrong = [one for one in beyond if one.value > _precision(one)]
    return (FAILED if wrong else PRECISION), max(wrong or beyond, key=lambda one: by_allowed[one])


# ── what is compared ─────────────────────────────────────────────────────────────────────────────────────────────────


def _count_alike(baseline: Numbers, trial: Numbers) -> bool:
    """A program that only predicts in its beginning is counted by its predictions until it trains, and by its updates
    from then on. A run that was stopped before that has nothing to compare."""
    to_the_end = baseline.ended and trial.ended
    return to_the_end or None in (baseline.updates, trial.updates) or baseline.updates == trial.updates


def _moves(baseline: Numbers) -> bool:
    """Whether any variable does, or may have before it was first seen: what stays as it was made shows nothing of what
    is computed."""
    first: dict[object, int] = {}
    kept: list[dict[Any, Weights]] = [*baseline.weights.values(), *baseline.states.values()]
    moved = (first.setdefault(key, one.checksum) != one.checksum for row in kept for key, one in row.items())
    return max(len(baseline.weights), len(baseline.states)) < 2 or any(moved)


def _deviations(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    yield from _of_weights(baseline, trial)
    yield from _of_states(baseline, trial)
    trains = baseline.trains
    for name in sorted(set(baseline.series) & set(trial.series)):
        if trains and name.startswith(OUTPUTS):
            continue  # what a model under training puts out follows from its weights, in whatever calls
        kind: Kind = "outputs" if name.startswith(OUTPUTS) else "losses"
        yield from of_losses(baseline, trial, name, kind)
    if trains:
        return
    if baseline.digests and trial.digests:
        yield from outputs.of_digests(baseline, trial)
    else:
        yield from of_outputs(baseline, trial)


def _shared_states(
    baseline: Numbers, trial: Numbers
) -> tuple[dict[int, dict[str, Weights]], dict[int, dict[str, Weights]]]:
    """Variables that are not trained, as far as both have as many of the same name and shape."""
    ours, theirs = _groups(baseline), _groups(trial)
    same = {group for group, count in ours.items() if theirs.get(group) == count}

    def kept(numbers: Numbers) -> dict[int, dict[str, Weights]]:
        return {
            count: {key: one for key, one in found.items() if _group(key) in same}
            for count, found in numbers.states.items()
        }

    return kept(baseline), kept(trial)


def _of_states(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    """Variables that are not trained, each compared at the moment at which it differs least."""
    ours, theirs = _shared_states(baseline, trial)
    at_once, *otherwise = map(_by_thing, _at_moments(baseline, trial, ours, theirs, "states"))
    for what, found in at_once.items():
        others = [other[what] for other in otherwise if 2 * len(other.get(what, [])) >= len(found)]
        yield from min((found, *others), key=_mean)


def _of_weights(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    """Variables that are trained, all compared at the one moment at which they differ least. Losses, which are compared
    at the very same step, show a training that lags behind."""
    at_once, *otherwise = _at_moments(baseline, trial, baseline.weights, trial.weights, "weights")
    others = [other for other in otherwise if 2 * len(other) >= len(at_once)]
    yield from min((at_once, *others), key=_mean) if at_once else ()


def _at_moments(baseline: Numbers, trial: Numbers, ours: dict, theirs: dict, kind: str) -> list[list[Deviation]]:  # type: ignore[type-arg]
    """An eager step is seen at its update, or at its gradients where the program moves its weights by itself; a traced
    one at its end. What a step changes later (weights, metrics, averages, networks that follow another) is one step
    behind in the eager one, and so is what a loop does behind a traced step where the other has a function for both.
    Where the two are not seen at the same moment: as they are, and one or the other a step later. What they have come
    to in the end is always compared as it is."""
    choices = [list(_of_variables(ours, theirs, kind))]
    if (baseline.counts, baseline.seen_at) != (trial.counts, trial.seen_at):
        last = min(baseline.made, trial.made)
        start = _first_seen(ours) if kind == "weights" else None
        final = [one for one in choices[0] if one.steps > last]
        choices += [[*_of_variables(_later(ours), theirs, kind, last, start), *final]]
        choices += [[*_of_variables(ours, _later(theirs), kind, last, start), *final]]
    return choices


def _later(states: dict) -> dict:  # type: ignore[type-arg]
    """What each variable was one step later, but for where it has begun anew by then."""
    first = _first_seen(states)
    return {
        count - 1: {key: one for key, one in found.items() if count == 2 or one.checksum != first[key].checksum}
        for count, found in states.items()
        if count > 1
    }


def _first_seen(states: dict) -> dict:  # type: ignore[type-arg]
    first: dict[object, Weights] = {}
    for _, found in sorted(states.items()):
        for key, one in found.items():
            first.setdefault(key, one)
    return first


def _by_thing(found: list[Deviation]) -> dict[str, list[Deviation]]:
    rows: dict[str, list[Deviation]] = defaultdict(list)
    for one in found:
        rows[one.what].append(one)
    return rows


def _mean(found: list[Deviation]) -> float:
    return float(np.mean([min(one.value, 1.0) for one in found]))


def _groups(numbers: Numbers) -> dict[str, int]:
    found: dict[str, set[str]] = defaultdict(set)
    for states in numbers.states.values():
        for key in states:
            found[_group(key)].add(key)
    return {group: len(keys) for group, keys in found.items()}


def _group(key: str) -> str:
    return key.rpartition("#")[0]


def _of_variables(
    ours: dict,  # type: ignore[type-arg]
    theirs: dict,  # type: ignore[type-arg]
    kind: str,
    last: float = math.inf,
    start: dict | None = None,  # type: ignore[type-arg]
) -> Iterator[Deviation]:
    """Each variable at each of the common steps, against how far it has moved since it was first seen."""
    first: dict[object, Weights] = dict(start or {})
    for steps in (count for count in sorted(ours) if count <= last):
        for key, one in ours[steps].items():
            begun = first.setdefault(key, one)
            other = theirs.get(steps, {}).get(key)
            if other is None or not one.sample.shape == other.sample.shape == begun.sample.shape:
                continue
            moved = max(movement(one.sample, begun.sample), LEAST_OF_SIZE[kind] * size(one.sample))
            name = f"weight {key}" if kind == "weights" else str(key)
            yield Deviation("weights", name, steps, of_variable(one, other, moved), moved)


# ── what is allowed ──────────────────────────────────────────────────────────────────────────────────────────────────


def _noise(runs: list[list[Deviation]]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """By thing: how far rounding and chance make it differ up to a step, at rising steps; not against its movement,
    which is nothing in the beginning."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for one in (one for run in runs for one in run):
        steps = found[one.kind, one.what]
        steps[one.steps] = max(steps.get(one.steps, 0.0), one.value * one.scale)
    rising: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for thing, steps in found.items():
        highest = 0.0
        rows = rising[thing] = []
        for step in sorted(steps):
            highest = max(highest, steps[step])
            rows.append((step, highest))
    return rising


def _allowed(one: Deviation, noise: dict[tuple[str, str], list[tuple[int, float]]]) -> float | None:
    """None where rounding alone makes so much that nothing can be told."""
    growth = 1.0 if one.kind == "outputs" else float(one.steps**0.5)
    rounding = ROUNDING[one.kind] * growth
    rows = noise.get((one.kind, one.what))
    if not rows:
        return rounding
    place = bisect_right(rows, (max(SOONER * one.steps, one.steps + AT_LEAST), math.inf))
    apart = rows[place - 1][1] if place else 0.0
    chance = WIDER * ratio(apart, one.scale)
    return None if chance > _precision(one) else max(rounding, chance)


def _precision(one: Deviation) -> float:
    return LIMITS[one.kind].after(one.steps)[1]


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _outputs_only(decided: list[Deviation]) -> bool:
    return all(one.kind == "outputs" for one in decided)


def _extent(baseline: Numbers, trial: Numbers, found: list[Deviation], decided: list[Deviation]) -> Extent:
    by_name: dict[str, set[int]] = defaultdict(set)
    lost: dict[str, set[int]] = defaultdict(set)
    for one in decided:
        if one.kind == "losses" and is_loss(one.what):
            by_name[one.what].add(one.steps)
            lost[one.what] |= {one.steps} if one.no_number else set()
    known = {one.key for one in decided}
    hidden = [one.steps for one in found if one.kind == "losses" and one.key not in known]
    variables = {one.what for one in decided if one.kind == "weights"}
    every = {f"weight {key}" for row in baseline.weights.values() for key in row}
    every |= {key for row in baseline.states.values() for key in row}
    steps = min(baseline.made, trial.made) or max((one.steps for one in decided), default=0)
    losses = min(max(map(len, by_name.values()), default=0), steps)
    last = max((max(seen) for seen in by_name.values()), default=steps)
    epochs = sum(1 for begin in baseline.epochs if begin < min(steps, last))
    whole = baseline.ended and trial.ended
    puts_out = sum(pair.compared for pair in outputs.pairs(baseline, trial)) if not baseline.trains else 0
    unknown = tuple(sorted({one.what for one in found if one.kind == "weights"} - variables))
    until = min(hidden, default=None)
    no_numbers = min(max(map(len, lost.values()), default=0), losses)
    return Extent(losses, no_numbers, steps, epochs, len(variables), len(every), unknown, until, puts_out, whole)


def _sentence(extent: Extent, worst: Deviation, verdict: str, decided: list[Deviation]) -> str:
    if all(one.value == 0.0 for one in decided):
        how = "are the same"
    elif verdict == REASSOCIATED:
        most = {kind: max((one.value for one in decided if one.kind == kind), default=None) for kind in ROUNDING}
        ending = {"losses": "", "weights": " of their movement", "outputs": ""}
        title = {"losses": "losses", "weights": "variables", "outputs": "outputs"}
        parts = [f"{title[k]} to {most[k]:.1g}{end}" for k, end in ending.items() if most[k] is not None]
        how = f"agree ({', '.join(parts)})"
    else:
        first = _first(worst, decided)
        what = first.what if first.kind != "weights" else f"the variable {first.what}"
        after = f"after {first.steps} step{'s' if first.steps != 1 else ''}"
        after = after if first.kind != "outputs" else f"in stretch {first.steps} of what it puts out"
        how = f"do not agree: {what} differs {by(worst.value)}, first {after}"
    ends = ", to the end of the program," if extent.whole else ""
    alike = "losses cannot be compared, as rounding alone changes them as much"
    hidden = f"; from step {extent.until} on {alike}" if extent.until is not None else ""
    return f"{extent}{ends} {how}{_of_hidden(extent.hidden)}{hidden}"


def _of_hidden(names: Sequence[str]) -> str:
    if not names:
        return ""
    which = " and ".join(name.removeprefix("weight ") for name in names[:2])
    what = f"the variable{'s' if len(names) > 1 else ''} {which}" if len(names) <= 2 else f"{len(names)} variables"
    return f"; of {what} nothing can be told, as rounding alone changes {'it' if len(names) == 1 else 'them'} as much"


def _first(worst: Deviation, decided: list[Deviation]) -> Deviation:
    """Where the thing that differs most differs for the first time, by as much as matters."""
    mine = [one for one in decided if one.kind == worst.kind and one.what == worst.what and one.value > 0.0]
    far = [one for one in mine if one.value >= 0.1 * worst.value]
    return replace(min(far, key=lambda one: one.steps))
