"""The user's samples for compression: never those that the race checks with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.model.errors import InvalidOption
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.compress import checks
from flatout.optimize.compress.checks import Array
from flatout.optimize.compress.int8.benefit import MIN_PARTS, Score
from flatout.subject import data, input_matching, keras_models
from flatout.subject.metric import metric_function
from flatout.subject.preparation import SubjectRequest, split_samples

BATCH = 256
ENOUGH = 256
"""Samples to choose by that are no samples of the calibration: with fewer, those count as well."""
PARTS = 40
"""Parts of the samples that are evaluated separately, to see how much of a difference is chance."""


@dataclass(frozen=True)
class Samples:
    calibration: list[Array]
    """To find ranges with, and to check with."""
    inputs: list[Array]
    """To choose by: those that are left over, and those of the calibration as well where these are few."""
    labels: list[Array]


def read(request: SubjectRequest, model: Any) -> Samples:
    declared = keras_models.declared_inputs(model)
    if request.data is None or declared is None:
        return Samples(checks.samples(model, 32), [], [])
    samples = data.read_samples(request.data, declared, request.features, request.read_limit)
    arrays = input_matching.match_inputs(samples, input_matching.apply_shapes(declared, request.shapes, True), True)
    if request.metric:
        samples.order_labels(getattr(model, "output_names", None) or ())
    rows = split_samples([*arrays, *samples.labels], request)
    calibration, spare = rows["calibration"], rows["spare"]
    choosing = spare if len(spare) >= ENOUGH else np.concatenate([calibration, spare])
    labels = [array[choosing] for array in samples.labels]
    return Samples([array[calibration] for array in arrays], [array[choosing] for array in arrays], labels)


def metric_drop(samples: Samples, original: Any, budget: AccuracyBudget) -> Callable[[Any], float]:
    """A function of a model: how much worse than the original it is, in the user's metric."""
    if budget.metric is None or not samples.labels:
        raise InvalidOption("A search chooses by the metric: give --metric, and --data with labels (`y` in an .npz).")
    evaluate = metric_function(budget.metric)

    def metric(model: Any) -> float:
        return evaluate(samples.labels, checks.outputs_by_batch(model, samples.inputs, BATCH))

    reference = metric(original)
    return lambda model: budget.drop(metric(model), reference)


def score(samples: Samples, budget: AccuracyBudget) -> Score | None:
    """A function that gives the user's metric of a model on each part of the samples; None without metric or data."""
    if budget.metric is None or not samples.labels or len(samples.inputs[0]) < MIN_PARTS:
        return None
    evaluate = metric_function(budget.metric)
    parts = np.array_split(np.arange(len(samples.inputs[0])), min(PARTS, len(samples.inputs[0])))

    def by_part(model: Any) -> list[float]:
        answers = checks.outputs_by_batch(model, samples.inputs, BATCH)
        values = [evaluate([a[part] for a in samples.labels], [a[part] for a in answers]) for part in parts]
        return [-value if budget.lower_is_better else value for value in values]

    return by_part
