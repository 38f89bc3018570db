"""The user's samples as compression may see them: never those that the race checks with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.model.errors import InvalidOption
from flatout.optimize.checks import Budget
from flatout.optimize.compress import checks
from flatout.optimize.compress.checks import Array
from flatout.optimize.compress.paying import FEWEST, Score
from flatout.subject import columns, data, judging, keras_models
from flatout.subject.preparing import Request, parted

AT_ONCE = 256
PARTS = 40
"""Into which samples are cut to see how much of a difference is chance."""


@dataclass(frozen=True)
class Samples:
    calibration: list[Array]
    """To find ranges with, and to check with."""
    inputs: list[Array]
    """To choose by."""
    labels: list[Array]


def read(request: Request, model: Any) -> Samples:
    declared = keras_models.declared(model)
    if request.data is None or declared is None:
        return Samples(checks.samples(model, 32), [], [])
    given = data.gather(request.data, declared, request.features, request.most)
    arrays = columns.matched(given, columns.settled(declared, request.shapes, True), True)
    rows = parted([*arrays, *given.labels], request)
    seen, others = rows["calibration"], np.concatenate([rows["calibration"], rows["spare"]])
    return Samples([a[seen] for a in arrays], [a[others] for a in arrays], [a[others] for a in given.labels])


def judge(samples: Samples, original: Any, budget: Budget) -> Callable[[Any], float]:
    """How much worse than the original a model is, in the user's metric."""
    if budget.metric is None or not samples.labels:
        raise InvalidOption(
            "A search has to know what is good enough: give --metric, and --data with labels (`y` in an .npz)."
        )
    measure = judging.measure_of(budget.metric)

    def metric(model: Any) -> float:
        return measure(samples.labels, checks.outputs_by_batch(model, samples.inputs, AT_ONCE))

    reference = metric(original)
    return lambda model: budget.drop(metric(model), reference)


def score(samples: Samples, budget: Budget) -> Score | None:
    """What a model is worth on each part of the samples, in the user's metric; None where that cannot be told."""
    if budget.metric is None or not samples.labels or len(samples.inputs[0]) < FEWEST:
        return None
    measure = judging.measure_of(budget.metric)
    parts = np.array_split(np.arange(len(samples.inputs[0])), min(PARTS, len(samples.inputs[0])))

    def of(model: Any) -> list[float]:
        answers = checks.outputs_by_batch(model, samples.inputs, AT_ONCE)
        values = [measure([a[part] for a in samples.labels], [a[part] for a in answers]) for part in parts]
        return [-value if budget.lower_is_better else value for value in values]

    return of
