"""How far numbers are apart. None of these functions ever returns NaN: it would pass each `apart > limit` that follows.

What is no number (NaN, infinite) in both is no difference; in one of both it is an infinite one.
"""

from __future__ import annotations

import math

import numpy as np

from flatout.measure.parity.numbers import Array


def distance(one: Array, other: Array) -> float:
    """Root of the squares."""
    with np.errstate(all="ignore"):
        difference = one.astype(np.float64) - other.astype(np.float64)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        value = float(np.linalg.norm(np.where(same, 0.0, difference)))
    return math.inf if math.isnan(value) else value


def movement(now: Array, before: Array) -> float:
    """How far a variable has come, by its elements that are numbers at both times: held against an infinite movement,
    nothing that differs in the other elements would be seen."""
    both = np.isfinite(now) & np.isfinite(before)
    return distance(now[both], before[both])


def size(array: Array) -> float:
    finite = array[np.isfinite(array)].astype(np.float64)
    return float(np.linalg.norm(finite))


def ratio(apart: float, size: float) -> float:
    if apart == 0.0:
        return 0.0
    return apart / size if size and math.isfinite(apart) and math.isfinite(size) else math.inf


def relative(one: float, other: float, scale: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    apart = abs(one - other)
    return math.inf if math.isnan(apart) or math.isinf(apart) else ratio(apart, max(abs(one), scale))


def by(value: float, of: str = "") -> str:
    """How far two things differ, in words: `by 0.05`."""
    return f"by {value:.1g}{of}" if math.isfinite(value) else "beyond measure (one of both is no number, or zero)"
