"""A contestant beside its baselines, from the rounds that both ran in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from flatout.measure import student
from flatout.measure.interval import CONFIDENCE, envelope, is_bounded, paired_ratio
from flatout.measure.pairs import RUN_ERROR
from flatout.measure.race.contestant import Contestant, Status, Verdict
from flatout.measure.race.rules import FAR_AHEAD, Rules, status_of
from flatout.model.case import Interval

Of = Literal["unit", "usual unit", "cpu"]
"""Which time is compared."""
T = TypeVar("T")
FEW_ROUNDS = 3
"""From so many on, a contestant that is far ahead has an interval."""


def judge(baselines: Sequence[Contestant], one: Contestant, rules: Rules, *, with_cpu: bool = True) -> Verdict:
    """What the rounds so far say of it."""
    confidence = rules.confidence
    wall = _against_all(baselines, one, "unit", confidence)
    cpu = _against_all(baselines, one, "cpu", confidence) if with_cpu else None
    bounded = wall is not None and is_bounded(wall)
    few = _far_ahead(baselines, one, confidence) if rules.few_rounds and not bounded else None
    speedup = wall if bounded else few
    return Verdict(
        status=_status(baselines, one, speedup),
        speedup=speedup,
        cpu=cpu if bounded else None,
        rounds=max((len(_paired(base.blocks, one.blocks)) for base in baselines), default=0),
        note=one.note,
        so_far=wall.ratio if wall is not None else None,
    )


def _far_ahead(baselines: Sequence[Contestant], one: Contestant, confidence: float) -> Interval | None:
    """The interval of one that is far ahead in rounds that are too few for a sign test; None for any other.

    Student's, of the logarithms. Rounds do not average out what two processes differ by, so that is added.
    """
    found = []
    for base in baselines:
        logs = [math.log(b / o) for b, o in _paired(_times(base, "unit"), _times(one, "unit"))]
        if len(logs) >= FEW_ROUNDS:
            error = math.hypot(statistics.stdev(logs) / math.sqrt(len(logs)), math.sqrt(2) * RUN_ERROR)
            reach, middle = student.quantile(confidence, len(logs) - 1) * error, statistics.fmean(logs)
            found.append(Interval(*(math.exp(middle + sign * reach) for sign in (0, -1, 1))))
    whole = envelope(found) if found else None
    return whole if whole is not None and whole.low > FAR_AHEAD else None


def claimed(verdict: Verdict, speedup: Interval | None) -> Verdict:
    """The verdict with the interval that holds for other processes; what was broken stays so."""
    if verdict.status in ("failed", "timeout"):
        return verdict
    return replace(verdict, status=status_of(speedup), speedup=speedup)


def compare(base: Contestant, one: Contestant, confidence: float = CONFIDENCE) -> Interval | None:
    """How many times longer a unit of `base` takes than one of `one`; None where the rounds are too few."""
    found = _against_all([base], one, "unit", confidence)
    return found if found is not None and is_bounded(found) else None


def ratios(baselines: Sequence[Contestant], one: Contestant, of: Of = "unit") -> list[float]:
    """Of every round, against every baseline."""
    own = _times(one, of)
    return [b / o for base in baselines for b, o in _paired(_times(base, of), own)]


def _against_all(baselines: Sequence[Contestant], one: Contestant, of: Of, confidence: float) -> Interval | None:
    own = _times(one, of)
    found = [
        (base, paired_ratio([b for b, _ in rounds], [o for _, o in rounds], confidence))
        for base in baselines
        if (rounds := _paired(_times(base, of), own))
    ]
    # A baseline that left after a few rounds has too few for bounds, for ever; the other one still counts.
    bounded = [interval for base, interval in found if base.active or is_bounded(interval)]
    return envelope(bounded or [interval for _, interval in found]) if found else None


def _times(one: Contestant, of: Of) -> list[float | None]:
    return one.unit_times() if of == "unit" else one.usual_times() if of == "usual unit" else one.cpu_times()


def _paired(base: Sequence[T | None], one: Sequence[T | None]) -> list[tuple[T, T]]:
    """What both have of the same rounds."""
    return [(b, o) for b, o in zip(base, one, strict=False) if b is not None and o is not None]


def _status(baselines: Sequence[Contestant], one: Contestant, speedup: Interval | None) -> Status:
    why = one.exit.why if one.exit is not None else None
    if why == "failed" or why == "timeout":
        return why
    if why == "ended":
        return "noise"
    if speedup is None and why in ("given-up", "behind"):
        # It left before there was an interval: slower than each baseline in each round, or only than the leader.
        return "lost" if max(ratios(baselines, one), default=1.0) < 1 else "noise"
    return status_of(speedup)
