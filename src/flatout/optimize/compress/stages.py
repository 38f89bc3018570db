"""Techniques in sequence, by name: `--compress prune=0.5,int8`.

prune=0.5      remove channels until half of the FLOPs are left   sparsity=0.8   set four fifths of the weights to zero
distill        train the model on the original's answers          cluster=16     sixteen distinct values per layer
student=0.5    distil into a fresh model of half the width        fold           batch norms into their layers
int8           calibrated rounding; with a train function also trained on the original's answers, where that helps
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
from flatout.optimize.compress.int8.benefit import Score
from flatout.optimize.compress.prune import prune
from flatout.optimize.compress.quantize import Array, quantize
from flatout.optimize.compress.results import Compressed
from flatout.optimize.compress.students import derive
from flatout.optimize.compress.training import Train


@dataclass(frozen=True)
class Resources:
    """What the stages work with."""

    original: Any
    train: Train | None
    inputs: list[Array]
    """Samples for calibration and checks."""
    checkpoint: Path | None = None
    score: Score | None = None
    """Decides whether training with rounding helped."""

    def train_for(self, stage: str) -> Train:
        if self.train is None:
            raise CompressionRefused(
                f"{stage} trains the model: give --train module:function, a function that trains its argument."
            )
        return self.train

    def checkpoint_of(self, number: int, stage: str) -> Path | None:
        return None if self.checkpoint is None else self.checkpoint / f"{number}-{stage}"


Stage = Callable[[Any, float | None, Resources, Path | None], Compressed]


def _prune(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    share = 0.5 if value is None else value
    steps = 1 if resources.train is None or share > 0.4 else 2
    return prune(model, flops=share, train=resources.train, steps=steps, checkpoint=checkpoint)


def _sparsity(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    return prune(model, sparsity=0.8 if value is None else value, train=resources.train, checkpoint=checkpoint)


def _cluster(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    return cluster(model, int(value or 16), train=resources.train, checkpoint=checkpoint)


def _fold(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    return fold(model, data=resources.inputs)


def _distill(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    return distill(resources.original, model, train=resources.train_for("distill"), checkpoint=checkpoint)


def _student(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    student = derive(model, width=0.5 if value is None else value, inherit=False)
    return distill(resources.original, student, train=resources.train_for("student"), checkpoint=checkpoint)


def _int8(model: Any, value: float | None, resources: Resources, checkpoint: Path | None) -> Compressed:
    return quantize(
        model,
        resources.inputs,
        train=resources.train,
        teacher=resources.original,
        validation=resources.score,
        checkpoint=checkpoint,
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
    """The stages that `prune=0.5,int8` names. Fails on anything else, before anything is trained."""
    found: list[tuple[str, float | None]] = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in STAGES:
            raise CompressionRefused(f"There is no stage named {name!r}. The stages are: {', '.join(STAGES)}.")
        try:
            found.append((name, float(value) if equals else None))
        except ValueError:
            raise CompressionRefused(f"{name} takes a number, such as {name}=0.5, not {value!r}.") from None
    if any(name == "int8" for name, _ in found[:-1]):
        raise CompressionRefused("int8 has to be the last stage: a rounded model cannot be changed any more.")
    return found


def apply(stages: list[tuple[str, float | None]], resources: Resources) -> list[Compressed]:
    """Run the stages one after the other. The last result has the final model."""
    results: list[Compressed] = []
    model = resources.original
    for number, (name, value) in enumerate(stages, 1):
        results.append(STAGES[name](model, value, resources, resources.checkpoint_of(number, name)))
        model = results[-1].model
    return results
