"""A slower program or a slower machine? The speed of the machine during a run, and how far the steps follow it.

A fixed piece of work is timed while the program runs (`observe/yardstick.py`). How far the steps follow it depends on
the program: one that computes follows fully, one that sleeps not at all. It is estimated from the seconds of the run,
as the slope of the logarithm of the steps over that of the work. Where the machine was even, there is no slope to
estimate and next to nothing to correct; the program is then assumed to follow as far as it keeps a core busy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Case
from flatout.model.evidence.program import CpuUse, Yardstick

Floats = NDArray[np.float64]
ASSUMED_ERROR = 0.3
"""Standard error of that assumption."""
LEAST_ERROR = 0.05
"""Smallest standard error of an estimate: no program does exactly this work."""
MOST = 1.2
STEPS_OF_A_SECOND = 3
"""Steps that a second needs to count."""
SECONDS = 5
"""Seconds that an estimate needs."""


@dataclass(frozen=True)
class Pace:
    micros: float
    """What the work took: the median over the steady steps."""
    by: str
    """What did the work: another version may take another time for it."""
    follows: float
    """By how much the steps' logarithm grows with that of the work."""
    error: float
    uneven: float
    """Standard deviation of the logarithm of the work from second to second, less the error of measuring it."""


def read(case: Case, indices: NDArray[np.int64], times: Floats) -> tuple[Pace | None, Floats]:
    """The pace of a run, and its steps as if the machine had been even: `times`, at these `indices` of the case."""
    found = case.evidence_of(Yardstick)
    rows = _rows(found[0]) if found else np.zeros((0, 3))
    if case.steps is None or not len(rows) or not len(times) or _has_a_device(case):
        return None, times
    numbers = indices * (max(case.steps.count, len(case.steps.times_ms)) / len(case.steps.times_ms))
    seconds = np.clip(np.searchsorted(rows[:, 0], numbers, side="right") - 1, 0, None)
    work = np.log(rows[:, 1])[seconds]
    follows, error = _follows(np.log(times), work, seconds, rows[:, 2] / rows[:, 1], _busy(case))
    middle = float(np.median(work))
    by = found[0].by
    uneven = _uneven(rows[np.unique(seconds)])
    return Pace(float(np.exp(middle)), by, follows, error, uneven), times * np.exp(-follows * (work - middle))


def _follows(
    steps: Floats, work: Floats, seconds: NDArray[np.int64], errors: Floats, assumed: float
) -> tuple[float, float]:
    known = ASSUMED_ERROR**-2
    each = [second for second in np.unique(seconds) if (seconds == second).sum() >= STEPS_OF_A_SECOND]
    if len(each) < SECONDS:
        return assumed, ASSUMED_ERROR
    y = np.array([np.median(steps[seconds == second]) for second in each])
    x = np.array([work[seconds == second][0] for second in each])
    y, x = y - y.mean(), x - x.mean()
    squares = float(x @ x)
    # The work is itself measured with an error, which makes any slope look flatter than it is.
    true = squares - float((errors[each] ** 2).sum())
    if true <= 0.2 * squares or squares <= 0:
        return assumed, ASSUMED_ERROR
    slope = float(x @ y) / true
    rest = max(float(((y - slope * x) ** 2).sum()) / (len(each) - 2), 1e-8)
    measured = true**2 / squares / rest  # the weights are inverse variances
    value = (known * assumed + measured * slope) / (known + measured)
    return float(np.clip(value, 0.0, MOST)), max((known + measured) ** -0.5, LEAST_ERROR)


def _uneven(rows: Floats) -> float:
    if len(rows) < 3:
        return 0.0
    return math.sqrt(max(float(np.log(rows[:, 1]).var(ddof=1) - ((rows[:, 2] / rows[:, 1]) ** 2).mean()), 0.0))


def _rows(evidence: Yardstick) -> Floats:
    """Step, time of the work, error of that. The file is not trusted: what is no positive number is left out."""
    rows = np.array(evidence.rows, dtype=np.float64).reshape(-1, 3)
    return rows[np.isfinite(rows).all(axis=1) & (rows[:, 1] > 0) & (rows[:, 2] >= 0)]


def _has_a_device(case: Case) -> bool:
    """Steps that run on a GPU follow its speed, and the work runs on a processor."""
    tensorflow: Any = case.environment.get("tensorflow")
    return bool(isinstance(tensorflow, dict) and tensorflow.get("gpu"))


def _busy(case: Case) -> float:
    used = next((item.used for item in case.evidence_of(CpuUse)), 1.0)
    return float(np.clip(used, 0.0, 1.0))
