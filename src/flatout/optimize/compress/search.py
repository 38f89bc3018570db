"""The techniques in sequence, further and further, as long as accuracy and time allow: prune → distil → int8.

Each round prunes the model of the round before and lets it learn from the original; what stays within the budget is
rounded to int8 as well and written as a file. At the end all that passed are timed side by side; those that nothing
beats in both speed and score are the front.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flatout
from flatout.case import Interval
from flatout.errors import CompressionRefused, FlatoutError
from flatout.measure.interval import paired_ratio
from flatout.optimize.compress import checks, graph, latency, litert, progress
from flatout.optimize.compress.quantize import Array
from flatout.optimize.compress.training import Train

Score = Callable[[Array, Array], float]
"""(labels, answers) → the higher the better."""


@dataclass
class Point:
    """One way to serve the model: what it scores on held-out data, how much faster than the original it is."""

    name: str
    score: float
    call: Callable[[], Any] = field(repr=False)
    path: Path | None = None
    model: Any = field(default=None, repr=False)
    speedup: Interval | None = None


@dataclass(frozen=True)
class Found:
    points: tuple[Point, ...]
    """All that stayed within the budget, the fastest first."""
    dropped: tuple[str, ...]
    """What did not, and why."""

    @property
    def front(self) -> tuple[Point, ...]:
        best: list[Point] = []
        for point in self.points:
            if not best or point.score > best[-1].score:
                best.append(point)
        return tuple(best)


def accuracy(labels: Array, answers: Array) -> float:
    return float((answers.argmax(-1) == labels.ravel()).mean())


def search(
    model: Any,
    held_out: tuple[Array, Array],
    *,
    train: Train,
    calibration: Array,
    directory: Path,
    max_drop: float = 0.015,
    shares: tuple[float, ...] = (0.6, 0.6, 0.6, 0.6, 0.6),
    seconds: float = 3600.0,
    score: Score = accuracy,
    batch: int = 1,
) -> Found:
    """Compress step by step. `shares`: of FLOPs that each round leaves of the round before. `held_out` is (inputs,
    labels)."""
    if len(graph.functional(model).inputs) != 1 or len(graph.functional(model).outputs) != 1:
        raise CompressionRefused(
            "The search works on models of one input and one output; use the techniques one by one."
        )
    directory.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    inputs, labels = held_out

    def scored(one: Any) -> float:
        parts = [checks.outputs(one, [inputs[at : at + 256]])[0] for at in range(0, len(inputs), 256)]
        return score(labels, np.concatenate(parts))

    original = Point("original", scored(model), latency.compiled(model, batch), model=model)
    points, dropped, current, left = [original], list[str](), model, 1.0
    told = progress.Progress("compressing, round", len(shares))
    for number, share in enumerate((1.0, *shares)):
        try:
            if share < 1:
                left *= share
                pruned = flatout.prune(current, flops=share, train=train, checkpoint=directory / f"prune-{number}")
                taught = flatout.distill(model, pruned.model, train=train, checkpoint=directory / f"distill-{number}")
                current = taught.model
                point = Point(
                    f"prune={left:.2g},distill", scored(current), latency.compiled(current, batch), model=current
                )
                if original.score - point.score > max_drop:
                    dropped.append(f"{point.name}: {original.score - point.score:.4f} worse")
                    break
                points.append(point)
            points += _rounded(
                current, left, train, calibration, directory, batch, scored, original.score - max_drop, dropped
            )
        except FlatoutError as error:
            dropped.append(f"round {number}: {error}")
            break
        told.step(number + 1, f"  (score {points[-1].score:.4f})")
        if time.monotonic() > until:
            dropped.append("the time was over")
            break
    return Found(_timed(points), tuple(dropped))


def _rounded(
    model: Any,
    left: float,
    train: Train,
    calibration: Array,
    directory: Path,
    batch: int,
    scored: Callable[[Any], float],
    least: float,
    dropped: list[str],
) -> list[Point]:
    """The model as an int8 file, where that scores enough."""
    name = f"prune={left:.2g},distill,int8" if left < 1 else "int8"
    rounded = flatout.quantize(model, calibration, train=train, checkpoint=directory / name.replace("=", "-")).model
    value = scored(rounded)
    if value < least:
        dropped.append(f"{name}: scores {value:.4f}")
        return []
    path = directory / f"{name.replace('=', '-')}.tflite"
    litert.write(rounded, path, [calibration[:64]])
    return [Point(name, value, litert.caller(path, batch), path, rounded)]


def _timed(points: list[Point]) -> tuple[Point, ...]:
    rounds = latency.rounds_of([point.call for point in points])
    for point, times in zip(points, rounds, strict=True):
        point.speedup = paired_ratio(rounds[0], times)
    return tuple(sorted(points, key=lambda point: -point.speedup.ratio if point.speedup else 0.0))
