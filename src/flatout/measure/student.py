"""Student's t for whole degrees of freedom, exact: with few processes an approximation is too far off."""

from __future__ import annotations

import functools
import math


def within(t: float, freedom: int) -> float:
    """The chance of a value between −t and t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@functools.cache
def quantile(confidence: float, freedom: int) -> float:
    """How many standard errors an interval of this confidence reaches to either side."""
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return high
