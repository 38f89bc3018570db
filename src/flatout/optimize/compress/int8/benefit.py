"""Decides whether training with rounding helped: compares the trained model with the one that was only calibrated.

Both answer samples that neither was trained on, in parts; the mean of the differences between parts and its standard
error decide. If rounding has cost accuracy, the better of the two models is taken. If it has cost nothing measurable,
there was nothing to regain, and the trained weights are taken only if they are better by more than chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.subject.metric import lower_is_better

Score = Callable[[Any], list[float]]
"""The metric of a model on each part of the samples; higher is better."""

STANDARD_ERRORS = 2.0
"""How far above zero a gain has to be: by chance once in forty times."""
MIN_PARTS = 8
"""Fewer parts give no usable standard error."""


@dataclass(frozen=True)
class Gain:
    """The gain of one model over another."""

    mean: float
    error: float

    @classmethod
    def of(cls, after: list[float], before: list[float]) -> Gain:
        differences = np.subtract(after, before)
        return cls(float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(len(differences))))

    def __str__(self) -> str:
        return f"{self.mean:+.2g} ± {self.error:.1g}"


@dataclass(frozen=True)
class Verdict:
    lost: Gain
    """The calibrated model against float: the cost of rounding."""
    won: Gain
    """The trained model against the calibrated one."""

    @property
    def training_helped(self) -> bool:
        rounding_cost = self.lost.mean < -self.lost.error
        return self.won.mean > (0.0 if rounding_cost else STANDARD_ERRORS * self.won.error)

    def __str__(self) -> str:
        kept = "the trained weights are kept" if self.training_helped else "the calibrated weights are kept"
        return f"calibrated {self.lost} against float, trained {self.won} against calibrated: {kept}"


def compare(score: Score, original: Any, calibrated: Any, trained: Any) -> Verdict:
    """The models are given as functions that return them: two of them may be one model with other weights."""
    floating, rounded, after_training = (score(model()) for model in (original, calibrated, trained))
    return Verdict(Gain.of(rounded, floating), Gain.of(after_training, rounded))


def has_enough_batches(data: Any, batch_size: int) -> bool:
    """Whether this data has enough batches to separate a difference from chance."""
    return len(list(itertools.islice(_batches(data, batch_size), MIN_PARTS))) == MIN_PARTS


def by_compiled_metric(data: Any, batch_size: int) -> Score:
    """A score by the first metric that a model was compiled with, or by its loss, on (x, y) or a dataset."""

    def score(model: Any) -> list[float]:
        found = []
        for batch in _batches(data, batch_size):
            model.reset_metrics()
            values = model.test_on_batch(*batch, return_dict=True)
            name = next((name for name in values if name != "loss"), "loss")
            found.append(float(values[name]) * (-1.0 if lower_is_better(name) else 1.0))
        return found

    return score


def _batches(data: Any, size: int) -> Iterator[tuple[Any, ...]]:
    """Full batches only: a model may have a fixed batch size, and parts of equal weight should have equal size."""
    import keras

    if not isinstance(data, tuple):
        for batch in data:
            yield keras.utils.unpack_x_y_sample_weight(batch)
        return
    count = len(keras.tree.flatten(data)[0])
    for start in range(0, count - size + 1, size):
        yield tuple(keras.tree.map_structure(lambda array, at=start: array[at : at + size], part) for part in data)
