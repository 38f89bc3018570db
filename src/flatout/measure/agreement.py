"""How well answers agree with those of the original: 1 is the same, 0 no better than always answering the mean.

One number for each output: 1 − (mean squared difference) / (variance of the original's answers), the share of the
original's variance that is kept. 0.99 is a signal to noise ratio of 20 dB. Whole numbers and strings agree where they
are equal.

No number is worth anything where the form differs: another number of outputs, another shape, another kind of type, or
NaN and infinity in other places. `unlike` says so, and `difference` what is different beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

KINDS = {"i": "whole", "u": "whole", "S": "text", "U": "text", "O": "text"}
"""Kinds of types that count as the same one. Others are as numpy has them."""


def agreement(original: Sequence[Array], answers: Sequence[Array]) -> list[float]:
    """For each output. There may be fewer answers than the original has: they are those to the first samples."""
    return [_of(head(one, other), other) for one, other in zip(original, answers, strict=True)]


def relative_error(original: Sequence[Array], answers: Sequence[Array]) -> float:
    """Root mean squared difference over root mean square, the largest of all outputs of floats; where the original
    answers zeros alone, the difference itself. Where either is no number, or the shapes differ, nothing is compared:
    `difference` is for that."""
    errors = [0.0]
    for one, other in zip(original, answers, strict=True):
        one, other = np.asarray(head(one, other)), np.asarray(other)
        if not (is_float(one) and is_float(other)) or one.shape != other.shape:
            continue
        kept = np.isfinite(one) & np.isfinite(other)
        a, b = _parts(one[kept]), _parts(other[kept])
        scale = float(np.sqrt(np.mean(a**2))) if a.size else 0.0
        off = float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0
        errors.append(off / scale if scale > 0 else off)
    return max(errors)


def unlike(original: Sequence[Array], answers: Sequence[Array]) -> str:
    """What tells these answers from the original's before any value is compared: how many outputs there are, their
    shapes, their types, where they are no numbers. Empty if nothing does."""
    if len(original) != len(answers):
        return f"it has {len(answers)} outputs; the original has {len(original)}"
    for place, (one, other) in enumerate(zip(original, answers, strict=True)):
        if one.shape != other.shape:
            return f"output {place} has the shape {other.shape}; the original's is {one.shape}"
        if _kind(one) != _kind(other):
            return f"output {place} is {other.dtype.name}; the original's is {one.dtype.name}"
        if not _numbers_in_the_same_places(one, other):
            return f"output {place} has NaN or infinity in other places than the original's"
    return ""


def difference(original: Sequence[Array], answers: Sequence[Array], allowed: float) -> str:
    """What is different: anything that `unlike` names, a whole number, a string, or floats by more than the relative
    error that is allowed. Empty if nothing is."""
    if problem := unlike(original, answers):
        return problem
    for place, (one, other) in enumerate(zip(original, answers, strict=True)):
        if not is_float(one) and not np.array_equal(one, other):
            return f"output {place} differs in {int(np.sum(one != other)):,} of {one.size:,} values"
    error = relative_error(original, answers)
    return "" if error <= allowed else f"its numbers are off by {error:.1e}"


def is_float(array: Array) -> bool:
    """Whether it holds numbers that may differ by rounding."""
    return array.dtype.kind in "fc"


def head(one: Array, other: Array) -> Array:
    """As many rows of `one` as `other` has."""
    return one[: len(other)] if one.ndim and other.ndim else one


def _of(original: Array, answer: Array) -> float:
    if original.shape != answer.shape or _kind(original) != _kind(answer):
        return float("-inf")
    if not is_float(original):
        return float(np.mean(original == answer)) if original.size else 1.0
    if not _numbers_in_the_same_places(original, answer):
        return float("-inf")
    finite = np.isfinite(original)
    a, b = _parts(original[finite]), _parts(answer[finite])
    if not a.size:
        return 1.0
    off, spread = float(np.mean((a - b) ** 2)), float(np.var(a))
    # Answers that are nearly the same for all samples have no variance; then the size of the values counts.
    return 1.0 - off / max(spread, 1e-4 * float(np.mean(a**2)), 1e-30)


def _kind(array: Array) -> str:
    kind: str = array.dtype.kind
    return KINDS.get(kind, kind)


def _numbers_in_the_same_places(one: Array, other: Array) -> bool:
    """Whether NaN stands where NaN does, and each infinity where the same one does."""
    if not (is_float(one) and is_float(other)):
        return True
    if np.isfinite(one).all() and np.isfinite(other).all():
        return True
    return all(np.array_equal(_places(part(one)), _places(part(other))) for part in (np.real, np.imag))


def _places(array: Array) -> Array:
    """Of each element: NaN, infinity with its sign, or a number."""
    return np.where(np.isnan(array), 3, np.where(np.isinf(array), np.sign(array), 0))


def _parts(array: Array) -> Array:
    """As float64; of complex numbers both parts."""
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.float64)
