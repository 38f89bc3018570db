"""Samples that no data has and that come one day: NaN, infinity, integers out of range. Runs in a child process.

Runtimes differ in what they make of them: one keeps NaN, another answers a number as if nothing were wrong. What is
found out here is told, and NaN and infinity are refused by the loader where they are answered in another way.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
import numpy as np

from flatout.measure.agreement import relative_error
from flatout.routes._route import Runner
from flatout.subject import Array, Subject, graph, in_batches, plain_array

SECONDS = 30.0
ALIKE = 0.1
"""Largest relative difference where both answer numbers: int8 is no fault here."""
LARGE, NEGATIVE = 2**30, -1


def finite(array: Any) -> bool:
    """Whether it holds no NaN and no infinity: the sum of the squares tells, unless it overflows."""
    flat = numpy.asarray(array).ravel()
    if flat.dtype.kind != "f":
        return True
    return math.isfinite(numpy.dot(flat, flat)) or bool(numpy.isfinite(flat).all())


FINITE = "\n" + inspect.getsource(finite).replace("(array: Any) -> bool", "(array)")
"""For loaders, which import no types."""


def finite_only(runner: Runner) -> Runner:
    """As the loader of an artefact that refuses other samples, so that what is raced has that cost."""

    def run(inputs: Any) -> Any:
        if not all(finite(array) for array in inputs):
            raise ValueError("NaN or infinity")
        return runner(inputs)

    return run


def unfinite(subject: Subject, batch: int) -> Iterator[list[Array]]:
    """Batches whose first sample has NaN or infinity in one place of each input of floats, or NaN in all."""
    for value, everywhere in ((np.nan, False), (np.inf, False), (-np.inf, False), (np.nan, True)):
        yield from _changed(subject, batch, "f", value, everywhere)


def out_of_range(subject: Subject, batch: int) -> Iterator[list[Array]]:
    for value in (LARGE, NEGATIVE):
        yield from _changed(subject, batch, "i", value, everywhere=False)


def differs(subject: Subject, batch: int, runner: Runner, samples: Callable[..., Iterator[list[Array]]]) -> str:
    """What the artefact makes of such samples where the original does something else; empty if it does the same."""
    import tensorflow as tf

    original, end = graph.load(subject), time.monotonic() + SECONDS
    for arrays in samples(subject, batch):
        if time.monotonic() > end:
            break
        try:
            expected = [plain_array(one) for one in original.serve(*(tf.constant(array) for array in arrays))]
        except (ValueError, tf.errors.OpError):
            expected = []
        try:
            given = [plain_array(one) for one in runner(arrays)]
        except Exception:  # refused: that is always in order
            continue
        if not expected:
            return "answered where the original refuses them"
        if not _alike(expected, given):
            return "answered otherwise than by the original"
    return ""


def _alike(expected: Sequence[Array], given: Sequence[Array]) -> bool:
    for one, other in zip(expected, given, strict=True):
        if one.shape != other.shape:
            return False
        if one.dtype.kind == "f" and not np.array_equal(_kinds(one), _kinds(other)):
            return False
    return relative_error(expected, given) <= ALIKE


def _kinds(array: Array) -> Array:
    """Of each element: NaN, infinity with its sign, or a number."""
    return np.where(np.isnan(array), 3, np.where(np.isinf(array), np.sign(array), 0))


def _changed(subject: Subject, batch: int, kind: str, value: float, everywhere: bool) -> Iterator[list[Array]]:
    arrays = [array.copy() for array in next(in_batches(subject.samples("held_out"), batch))]
    found = False
    for array in arrays:
        if array.dtype.kind != kind or (kind == "i" and array.dtype.itemsize < 4) or not array.size:
            continue
        found = True
        first = array.reshape(-1) if batch == 0 else array[0].reshape(-1)
        if not np.shares_memory(first, array):
            continue
        first[slice(None) if everywhere else first.size // 2] = value
    if found:
        yield arrays
