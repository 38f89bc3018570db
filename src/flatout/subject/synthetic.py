"""Random samples for a model without data: enough to run it, not to judge it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flatout.subject.columns import numpy_type
from flatout.subject.subject import Array, Tensor


def samples(inputs: Sequence[Tensor], count: int) -> list[Array]:
    source = np.random.default_rng(0)
    return [_of(one, count, source) for one in inputs]


def _of(one: Tensor, count: int, source: np.random.Generator) -> Array:
    shape = (count, *one.sample)
    if one.dtype == "str":
        return np.full(shape, b"text")
    dtype = np.dtype(numpy_type(one.dtype))
    if dtype.kind == "f":
        return source.standard_normal(shape).astype(dtype)
    if dtype == np.uint8:
        return source.integers(0, 256, shape).astype(dtype)
    # Whole numbers are most often places in a table whose size nobody tells: the first two are always there.
    return source.integers(0, 2, shape).astype(dtype)
