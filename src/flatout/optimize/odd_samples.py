"""Samples that no data has and that come one day: NaN, infinity, integers out of range, empty strings. In a child.

Runtimes differ in what they make of them: one keeps NaN, another answers a number as if nothing were wrong. NaN and
infinity are refused by the loader where they are answered in another way, of integers it is told, and an artefact that
reads strings in another way is not handed over.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import numpy as np

from flatout.measure.agreement import difference
from flatout.routes._route import Runner
from flatout.subject import Array, Subject, graph, in_batches, plain_array
from flatout.subject.numpy_steps import ODD_STRINGS

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
    """Batches whose first sample has NaN or infinity in one place of an input of floats, or NaN in all."""
    for value, everywhere in ((np.nan, False), (np.inf, False), (-np.inf, False), (np.nan, True)):
        yield from _changed(subject, batch, "f", value, everywhere)


def out_of_range(subject: Subject, batch: int) -> Iterator[list[Array]]:
    for value in (LARGE, NEGATIVE):
        yield from _changed(subject, batch, "i", value, everywhere=False)


def odd_strings(subject: Subject, batch: int) -> Iterator[list[Array]]:
    """Batches whose first sample is empty, no UTF-8, of other alphabets, or long."""
    for text in ODD_STRINGS:
        arrays = next(in_batches(subject.samples("held_out"), batch))
        for places in _together_and_alone([array.dtype.kind == "S" for array in arrays]):
            changed = list(arrays)
            for place in places:
                array = arrays[place].astype(f"S{max(arrays[place].dtype.itemsize, len(text), 1)}")
                array[() if batch == 0 or not array.ndim else 0] = text
                changed[place] = array
            yield changed


Samples = Callable[[Subject, int], Iterator[list[Array]]]
KINDS: Mapping[str, tuple[str, Samples]] = {
    "numbers": ("float", unfinite), "integers": ("int", out_of_range), "strings": ("str", odd_strings),
}  # fmt: skip
"""With the types of inputs that have them, by the beginning of their names."""


def kinds(subject: Subject) -> list[str]:
    """Those that the model's inputs can be given."""
    names = [one.dtype.removeprefix("b") if one.dtype == "bfloat16" else one.dtype for one in subject.inputs]
    return [kind for kind, (beginning, _) in KINDS.items() if any(name.startswith(beginning) for name in names)]


def differs(subject: Subject, batch: int, runner: Runner, samples: Samples) -> str:
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
        if difference(expected, given, ALIKE):
            return "answered otherwise than by the original"
    return ""


def _changed(subject: Subject, batch: int, kind: str, value: float, everywhere: bool) -> Iterator[list[Array]]:
    arrays = next(in_batches(subject.samples("held_out"), batch))
    fit = [one.dtype.kind == kind and (kind != "i" or one.dtype.itemsize >= 4) and one.size > 0 for one in arrays]
    for places in _together_and_alone(fit):
        changed = [array.copy() for array in arrays]
        for place in places:
            first = changed[place].reshape(-1) if batch == 0 else changed[place][0].reshape(-1)
            if np.shares_memory(first, changed[place]):
                first[slice(None) if everywhere else first.size // 2] = value
        yield changed


def _together_and_alone(fit: Sequence[bool]) -> list[list[int]]:
    """The places of inputs that are changed: all that fit, then each alone, as one may hide what is made of another."""
    places = [place for place, fits in enumerate(fit) if fits]
    return [places, *([place] for place in places if len(places) > 1)] if places else []
