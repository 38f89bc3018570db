"""Which array of the data belongs to which input of the model, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flatout.model.errors import DataUnusable
from flatout.subject.data import Samples
from flatout.subject.original import Declared
from flatout.subject.subject import Array


def matched(samples: Samples, inputs: Sequence[Declared], batched: bool) -> list[Array]:
    """The arrays in the order of the inputs, in the inputs' types."""
    return [
        _fitting(array, one, samples.origin, batched)
        for array, one in zip(_ordered(samples, inputs), inputs, strict=True)
    ]


def _ordered(samples: Samples, inputs: Sequence[Declared]) -> list[Array]:
    arrays = samples.arrays
    if all(one.name in arrays for one in inputs):
        return [arrays[one.name] for one in inputs]
    if len(arrays) == len(inputs):
        return list(arrays.values())
    if len(arrays) == len(inputs) + 1 and not samples.labels:
        *rest, labels = arrays.values()
        samples.labels = [labels]
        return rest
    raise DataUnusable(
        f"{samples.origin} has the arrays {', '.join(arrays)}; the model takes {_told(inputs)}. Name the arrays after "
        "the inputs, and the labels `y`."
    )


def _fitting(array: Array, one: Declared, origin: str, batched: bool) -> Array:
    wanted = one.shape if batched else (None, *one.shape)
    fits = array.ndim == len(wanted) and all(
        w is None or w == n for w, n in zip(wanted[1:], array.shape[1:], strict=True)
    )
    if not fits:
        raise DataUnusable(
            f"Input {one.name!r} takes samples of shape {_shape(wanted[1:])}; {origin} has {_shape(array.shape[1:])} "
            f"({array.shape[0] if array.ndim else 0} of them). Reshape the data, or give the shape with --shape if "
            "the model has several."
        )
    if one.dtype == "str":
        return array.astype(np.bytes_) if array.dtype.kind in "UO" else array
    if array.dtype.kind not in "biuf":
        raise DataUnusable(f"Input {one.name!r} takes {one.dtype}; {origin} has {array.dtype}.")
    return _finite(array.astype(numpy_type(one.dtype), copy=False), one.name, origin)


def numpy_type(name: str) -> str:
    """bfloat16 is not one of numpy's own types: such inputs are given as float32."""
    return "float32" if name == "bfloat16" else name


def _finite(array: Array, name: str, origin: str) -> Array:
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise DataUnusable(
                f"{int(bad.sum())} of {len(array)} samples of {name!r} in {origin} hold NaN or infinity, the first at "
                f"index {int(np.argmax(bad))}. A model judged by them would be judged by chance: leave them out or "
                "fill them."
            )
    return array


def settled(inputs: Sequence[Declared], given: Mapping[str, Sequence[int]], batched: bool) -> list[Declared]:
    """The inputs with --shape filled in: a shape without the batch dimension for each name."""
    unknown = set(given) - {one.name for one in inputs}
    if unknown:
        raise DataUnusable(f"--shape names {', '.join(sorted(unknown))}; the model takes {_told(inputs)}.")
    result = []
    for one in inputs:
        shape = given.get(one.name)
        if shape is None:
            result.append(one)
            continue
        old = one.shape[1:] if batched else one.shape
        if len(shape) != len(old) or any(o is not None and o != n for o, n in zip(old, shape, strict=True)):
            raise DataUnusable(
                f"--shape {one.name}={','.join(map(str, shape))} does not fit {_shape(old)}, which the model declares "
                "(batch dimension left out)."
            )
        result.append(Declared(one.name, one.dtype, (one.shape[0], *shape) if batched else tuple(shape)))
    return result


def _told(inputs: Sequence[Declared]) -> str:
    return ", ".join(f"{one.name} {_shape(one.shape)}" for one in inputs)


def _shape(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
