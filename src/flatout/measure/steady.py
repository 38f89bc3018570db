"""The error of the median step of one run.

Neighbouring steps are alike: a slow phase of the machine, a full buffer, an epoch make a run of slow ones. To treat
them as independent would make any two runs look different. Whole blocks of neighbouring steps are therefore resampled
(the stationary bootstrap of Politis and Romano). How long the blocks are follows from how far the steps are correlated
(Politis and White's rule, on whether a step lies above the median).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Steps

Floats = NDArray[np.float64]
RESAMPLES = 400
FEWEST = 8
"""Steady steps that the error of a median needs at least."""
ENOUGH = 30
"""Steps outside of the trace window, from which on those inside are left out: tracing costs them some percent."""


def steady_indices(steps: Steps) -> NDArray[np.int64]:
    """Indices into `times_ms` of the steps to judge by: after the warm-up, outside the trace window if enough are."""
    times = np.asarray(steps.times_ms, dtype=np.float64)
    if not len(times):
        return np.zeros(0, np.int64)
    scale = len(times) / max(steps.count, len(times))  # long runs keep every n-th step
    first = min(math.ceil(steps.warmup * scale), len(times) - 1)
    keep = np.arange(len(times)) >= first
    if steps.window is not None:
        low, high = (math.floor(edge * scale) for edge in steps.window)
        outside = keep.copy()
        outside[max(low, 0) : high + 2] = False  # the step after the last one pays for writing the trace
        keep = outside if outside.sum() >= ENOUGH else keep
    return np.flatnonzero(keep & np.isfinite(times) & (times > 0))


def error_of_median(times: Floats) -> float | None:
    """Standard error of the logarithm of the median; None where there are too few steps to tell."""
    if len(times) < FEWEST:
        return None
    logs = np.log(times)
    drawn = np.median(logs[stationary_blocks(len(logs), block_length(logs), RESAMPLES)], axis=1)
    return float(drawn.std(ddof=1))


def stationary_blocks(count: int, mean_length: float, resamples: int, seed: int = 20) -> NDArray[np.int64]:
    """Indices to draw, a row for each resample: blocks of random length that wrap around the end."""
    chance = np.random.default_rng(seed)
    begins = chance.random((resamples, count)) < 1 / max(mean_length, 1.0)
    begins[:, 0] = True
    starts = chance.integers(0, count, (resamples, count))
    index = np.arange(count)
    origin = np.maximum.accumulate(np.where(begins, index, 0), axis=1)
    return (np.take_along_axis(starts, origin, axis=1) + index - origin) % count


def block_length(values: Floats) -> float:
    """The mean block for which the bootstrap's error is least, at most a third of the run."""
    count = len(values)
    signs = np.sign(values - np.median(values))
    signs = signs - signs.mean()
    variance = float(signs @ signs) / count
    most = count / 3
    if variance <= 0:
        return 1.0
    run = max(5, math.ceil(math.sqrt(math.log10(count))))
    lags = min(math.ceil(math.sqrt(count)) + run, count - 1)
    products = np.array([float(signs[: count - k] @ signs[k:]) / count for k in range(lags + 1)])
    small = np.abs(products[1:] / variance) < 2 * math.sqrt(math.log10(count) / count)
    last = next((k for k in range(len(small)) if small[k : k + run].all()), len(small))
    width = min(2 * max(last, 1), lags)
    k = np.arange(1, width + 1)
    weight = np.minimum(1.0, 2 * (1 - k / width)) if width > 1 else np.ones(1)
    spectrum = variance + 2 * float(weight @ products[1 : width + 1])
    slope = 2 * float(weight @ (k * products[1 : width + 1]))
    if spectrum <= 0:
        return 1.0
    return float(np.clip((slope**2 / spectrum**2 * count) ** (1 / 3), 1.0, most))
