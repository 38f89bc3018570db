"""How well answers agree with those of the original: 1 is the same, 0 no better than always answering the mean.

One number for each output: 1 − (mean squared difference) / (variance of the original's answers), the share of the
original's variance that is kept. 0.99 is a signal to noise ratio of 20 dB. Whole numbers and strings agree where they
are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def agreement(original: Sequence[Array], answers: Sequence[Array]) -> list[float]:
    """For each output. There may be fewer answers than the original has: they are those to the first samples."""
    return [_of(one[: len(other)], other) for one, other in zip(original, answers, strict=True)]


def relative_error(original: Sequence[Array], answers: Sequence[Array]) -> float:
    """Root mean squared difference over root mean square, the largest of all outputs."""
    errors = [0.0]
    for one, other in zip(original, answers, strict=True):
        one = one[: len(other)]
        if one.dtype.kind != "f" or one.shape != other.shape:
            continue
        kept = np.isfinite(one) & np.isfinite(other)
        a, b = one[kept].astype(np.float64), other[kept].astype(np.float64)
        scale = float(np.sqrt(np.mean(a**2))) if a.size else 0.0
        errors.append(float(np.sqrt(np.mean((a - b) ** 2))) / scale if scale > 0 else 0.0)
    return max(errors)


def _of(original: Array, answer: Array) -> float:
    if original.shape != answer.shape:
        return float("-inf")
    if original.dtype.kind != "f":
        return float(np.mean(original == answer)) if original.size else 1.0
    a, b = original.astype(np.float64), answer.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return float("-inf")
    a, b = a[finite], b[finite]
    if not a.size:
        return 1.0
    off, spread = float(np.mean((a - b) ** 2)), float(np.var(a))
    # Answers that are nearly the same for all samples have no variance; then the size of the values counts.
    return 1.0 - off / max(spread, 1e-4 * float(np.mean(a**2)), 1e-30)
