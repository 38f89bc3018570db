"""Techniques in sequence, by name: `prune=0.5,int8`. What the command line is made of.

prune=0.5      channels out until half of the FLOPs are left     sparsity=0.8   four fifths of the weights to zero
distill        train what is there on the original's answers     cluster=16     sixteen distinct values per layer
student=0.5    a fresh model of half the width, distilled        fold           batch norms into their layers
int8           rounding, calibrated; taught by the original where there is a train function and where that pays
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.cluster import cluster
from flatout.optimize.compress.distill import distill
from flatout.optimize.compress.fold import fold
from flatout.optimize.compress.paying import Score
from flatout.optimize.compress.prune import prune
from flatout.optimize.compress.quantize import Array, quantize
from flatout.optimize.compress.results import Compressed
from flatout.optimize.compress.students import derive
from flatout.optimize.compress.training import Train


@dataclass(frozen=True)
class Means:
    """What stages work with."""

    original: Any
    train: Train | None
    inputs: list[Array]
    """Samples for calibration and checks."""
    checkpoint: Path | None = None
    score: Score | None = None
    """By which it is told whether a training under rounding paid."""

    def trains(self, stage: str) -> Train:
        if self.train is None:
            raise CompressionRefused(f"{stage} has to train: give --train module:function, a function of the model.")
        return self.train

    def place(self, number: int, stage: str) -> Path | None:
        return None if self.checkpoint is None else self.checkpoint / f"{number}-{stage}"


Stage = Callable[[Any, float | None, Means, Path | None], Compressed]


def _prune(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    share = 0.5 if value is None else value
    steps = 1 if means.train is None or share > 0.4 else 2
    return prune(model, flops=share, train=means.train, steps=steps, checkpoint=place)


def _sparsity(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    return prune(model, sparsity=0.8 if value is None else value, train=means.train, checkpoint=place)


def _cluster(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    return cluster(model, int(value or 16), train=means.train, checkpoint=place)


def _fold(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    return fold(model, data=means.inputs)


def _distill(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    return distill(means.original, model, train=means.trains("distill"), checkpoint=place)


def _student(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    student = derive(model, width=0.5 if value is None else value, inherit=False)
    return distill(means.original, student, train=means.trains("student"), checkpoint=place)


def _int8(model: Any, value: float | None, means: Means, place: Path | None) -> Compressed:
    return quantize(
        model,
        means.inputs,
        train=means.train,
        teacher=means.original,
        validation=means.score,
        checkpoint=place,
    )


STAGES: dict[str, Stage] = {
    "prune": _prune,
    "sparsity": _sparsity,
    "cluster": _cluster,
    "fold": _fold,
    "distill": _distill,
    "student": _student,
    "int8": _int8,
}


def parse(text: str) -> list[tuple[str, float | None]]:
    """`prune=0.5,int8` as stages; anything else is refused before anything is trained."""
    found: list[tuple[str, float | None]] = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in STAGES:
            raise CompressionRefused(f"There is no compression {name!r}; there are {', '.join(STAGES)}.")
        try:
            found.append((name, float(value) if equals else None))
        except ValueError:
            raise CompressionRefused(f"{name} takes a number, such as {name}=0.5, not {value!r}.") from None
    if any(name == "int8" for name, _ in found[:-1]):
        raise CompressionRefused("int8 comes last: what is rounded already cannot be changed any more.")
    return found


def apply(stages: list[tuple[str, float | None]], means: Means) -> list[Compressed]:
    """One after the other; the last result has the final model."""
    results: list[Compressed] = []
    model = means.original
    for number, (name, value) in enumerate(stages, 1):
        results.append(STAGES[name](model, value, means, means.place(number, name)))
        model = results[-1].model
    return results
