"""The Pareto front: the trials that no other trial beats in latency, size and accuracy at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flatout.model.case import Serving, Trial

ACCURACY_TOLERANCE = 1e-4
"""Accuracies that differ by less count as equal."""

Point = tuple[float, float, float]
"""Latency, size, loss of accuracy: smaller is better in each."""


def mark_front(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials, with those on the front marked."""
    points = {i: _point(trial.serving) for i, trial in enumerate(trials) if trial.serving and _passed(trial)}
    front = {i for i, mine in points.items() if mine and not any(_beats(its, mine) for its in points.values() if its)}
    return tuple(
        replace(trial, serving=replace(trial.serving, on_front=i in front)) if trial.serving else trial
        for i, trial in enumerate(trials)
    )


def _passed(trial: Trial) -> bool:
    return trial.status not in ("failed", "timeout") and trial.stage == "route"


def _point(serving: Serving) -> Point | None:
    if not serving.latencies or not serving.size_bytes:  # routes measured for comparison only have no size
        return None
    loss = serving.drop if serving.drop is not None else 1 - (serving.agreement if serving.agreement is not None else 1)
    return serving.latencies[0].p50, float(serving.size_bytes), loss


def _beats(its: Point, mine: Point) -> bool:
    at_least_as_good = its[0] <= mine[0] and its[1] <= mine[1] and its[2] <= mine[2] + ACCURACY_TOLERANCE
    return at_least_as_good and (its[0] < mine[0] or its[1] < mine[1] or its[2] < mine[2] - ACCURACY_TOLERANCE)
