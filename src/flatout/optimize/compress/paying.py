"""Whether a training under rounding paid: the trained model beside the one that was only calibrated.

Both answer samples that neither has seen, part by part; what counts is the mean of the differences and how far it may
be off by chance. Where rounding has cost something, the better of the two is taken. Where it has cost nothing that
shows, there was nothing to win back, and the trained weights have to be better by more than chance to be taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.optimize.metrics import lower_is_better

Score = Callable[[Any], list[float]]
"""What a model is worth on each part of the samples; more is better."""

SURE = 2.0
"""Standard errors above nothing: one time in forty by chance."""
FEWEST = 8
"""Parts; of fewer an error cannot be told."""


@dataclass(frozen=True)
class Gain:
    """Of one model over another."""

    mean: float
    error: float

    @classmethod
    def of(cls, after: list[float], before: list[float]) -> Gain:
        apart = np.subtract(after, before)
        return cls(float(apart.mean()), float(apart.std(ddof=1) / math.sqrt(len(apart))))

    def __str__(self) -> str:
        return f"{self.mean:+.2g} ± {self.error:.1g}"


@dataclass(frozen=True)
class Verdict:
    lost: Gain
    """By rounding alone."""
    won: Gain
    """By training, over rounding alone."""

    @property
    def pays(self) -> bool:
        hurt = self.lost.mean < -self.lost.error
        return self.won.mean > (0.0 if hurt else SURE * self.won.error)

    def __str__(self) -> str:
        kept = "the trained weights are kept" if self.pays else "the calibrated weights are kept"
        return f"calibrated {self.lost} beside float, trained {self.won} beside calibrated: {kept}"


def verdict(score: Score, original: Any, calibrated: Any, trained: Any) -> Verdict:
    """The models are functions that give them: two of them may be one model with other weights."""
    floating, rounded, learned = (score(model()) for model in (original, calibrated, trained))
    return Verdict(Gain.of(rounded, floating), Gain.of(learned, rounded))


def enough(data: Any, batch_size: int) -> bool:
    """Whether it can be told from this data how much of a difference is chance."""
    return len(list(itertools.islice(_batches(data, batch_size), FEWEST))) == FEWEST


def by_compiled_metric(data: Any, batch_size: int) -> Score:
    """The first metric that a model was compiled with, its loss where it has none, on (x, y) or a dataset."""

    def score(model: Any) -> list[float]:
        found = []
        for batch in _batches(data, batch_size):
            model.reset_metrics()
            told = model.test_on_batch(*batch, return_dict=True)
            name = next((name for name in told if name != "loss"), "loss")
            found.append(float(told[name]) * (-1.0 if lower_is_better(name) else 1.0))
        return found

    return score


def _batches(data: Any, size: int) -> Iterator[tuple[Any, ...]]:
    """Whole ones: a model may know no other size, and parts that count alike should be as large."""
    import keras

    if not isinstance(data, tuple):
        for batch in data:
            yield keras.utils.unpack_x_y_sample_weight(batch)
        return
    count = len(keras.tree.flatten(data)[0])
    for start in range(0, count - size + 1, size):
        yield tuple(keras.tree.map_structure(lambda array, at=start: array[at : at + size], part) for part in data)
