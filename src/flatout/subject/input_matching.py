"""Assigns the arrays of the data to the inputs of the model, and checks shapes, types and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flatout.model.errors import DataUnusable
from flatout.subject.keras_models import plain_names
from flatout.subject.original import DeclaredInput
from flatout.subject.samples import Samples
from flatout.subject.subject import Array, Tensor, as_bytes


def match_inputs(samples: Samples, inputs: Sequence[DeclaredInput], batched: bool) -> list[Array]:
    """The arrays in the order of the inputs, in the inputs' types."""
    return [
        _converted(array, one, samples.origin, batched)
        for array, one in zip(_ordered(samples, inputs), inputs, strict=True)
    ]


def _ordered(samples: Samples, inputs: Sequence[DeclaredInput]) -> list[Array]:
    arrays = samples.arrays
    if not all(one.name in arrays for one in inputs):
        arrays = _plainly_named(arrays)
    if all(one.name in arrays for one in inputs):
        return [arrays[one.name] for one in inputs]
    with_labels = len(arrays) == len(inputs) + 1 and not samples.labels
    if (len(arrays) == len(inputs) or with_labels) and not _named_otherwise(list(arrays), inputs):
        in_order = list(arrays.values())
        samples.labels = in_order[len(inputs) :] or samples.labels
        return in_order[: len(inputs)]
    raise DataUnusable(
        f"{samples.origin} has the arrays {', '.join(samples.arrays)}; the model takes {_describe(inputs)}. Name the "
        "arrays after the inputs, and the labels `y`."
    )


def _plainly_named(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """By the names that inputs of these names have here; arrays without names keep their numbers."""
    plain = plain_names(list(arrays))
    return {name if name.isdigit() else made: arrays[name] for name, made in zip(arrays, plain, strict=True)}


def _named_otherwise(names: Sequence[str], inputs: Sequence[DeclaredInput]) -> bool:
    """Whether by its place an array would be taken for something else than the input that it is named after."""
    places = {one.name: place for place, one in enumerate(inputs)}
    return any(places.get(name, place) != place for place, name in enumerate(names))


def _converted(array: Array, one: DeclaredInput, origin: str, batched: bool) -> Array:
    expected = one.shape if batched else (None, *one.shape)
    fits = array.ndim == len(expected) and all(
        e is None or e == n for e, n in zip(expected[1:], array.shape[1:], strict=True)
    )
    if not fits:
        raise DataUnusable(
            f"Input {one.name!r} takes samples of shape {_shape(expected[1:])}; {origin} has {_shape(array.shape[1:])} "
            f"({array.shape[0] if array.ndim else 0} of them). Reshape the data, or give the shape with --shape if "
            "the model has several."
        )
    if one.dtype == "str":
        if array.dtype.kind not in "SUO":
            raise DataUnusable(f"Input {one.name!r} takes strings; {origin} has {array.dtype}.")
        return as_bytes(_require_texts(array, one.name, origin))
    if array.dtype.kind not in "biuf":
        raise DataUnusable(f"Input {one.name!r} takes {one.dtype}; {origin} has {array.dtype}.")
    with np.errstate(invalid="ignore"):
        made = array.astype(numpy_type(one.dtype), copy=False)
    if made.dtype.kind in "biu" and (lost := made != array).any():
        raise DataUnusable(
            f"Input {one.name!r} takes {one.dtype}; {origin} has {array.dtype}, and {int(lost.sum()):,} of "
            f"{array.size:,} values would be changed by it, such as {array[lost][0]}. Give what the model takes."
        )
    return _require_finite(made, one.name, origin)


def numpy_type(name: str) -> str:
    """numpy's name of a type; inputs in bfloat16, which numpy lacks, are given as float32."""
    return "float32" if name == "bfloat16" else name


def _require_texts(array: Array, name: str, origin: str) -> Array:
    others = [one for one in array.ravel() if not isinstance(one, (str, bytes))] if array.dtype.kind == "O" else []
    if others:
        raise DataUnusable(
            f"Input {name!r} takes strings; {len(others):,} of {array.size:,} values in {origin} are none, such as "
            f"{str(others[0])[:40]}. Leave them out, or put the text there that the model is to be given."
        )
    cut = sum(one.endswith(b"\0" if isinstance(one, bytes) else "\0") for one in array.ravel())
    if cut:
        raise DataUnusable(
            f"Input {name!r}: {cut:,} of {array.size:,} strings in {origin} end with a zero byte, which numpy does not "
            "keep in an array of strings: the model would be given shorter ones. Leave these samples out."
        )
    return array


def _require_finite(array: Array, name: str, origin: str) -> Array:
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
        if bad.any():
            raise DataUnusable(
                f"{int(bad.sum())} of {len(array)} samples of {name!r} in {origin} contain NaN or infinity, the first "
                f"at index {int(np.argmax(bad))}. The model cannot be checked with them: leave them out or fill them."
            )
    return array


def apply_shapes(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]], batched: bool
) -> list[DeclaredInput]:
    """The inputs with the lengths of --shape: for some names, a shape without the batch dimension."""
    unknown = set(shapes) - {one.name for one in inputs}
    if unknown:
        raise DataUnusable(f"--shape names {', '.join(sorted(unknown))}; the model takes {_describe(inputs)}.")
    result = []
    for one in inputs:
        shape = shapes.get(one.name)
        if shape is None:
            result.append(one)
            continue
        old = one.shape[1:] if batched else one.shape
        if len(shape) != len(old) or any(o is not None and o != n for o, n in zip(old, shape, strict=True)):
            raise DataUnusable(
                f"--shape {one.name}={','.join(map(str, shape))} does not fit {_shape(old)}, the shape that the model "
                "declares (without the batch dimension)."
            )
        result.append(DeclaredInput(one.name, one.dtype, (one.shape[0], *shape) if batched else tuple(shape)))
    return result


def _describe(inputs: Sequence[DeclaredInput]) -> str:
    return ", ".join(f"{one.name} {_shape(one.shape)}" for one in inputs)


def _shape(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"


def random_samples(inputs: Sequence[Tensor], count: int) -> list[Array]:
    """Samples for a model without data: enough to run it, not to check its answers."""
    generator = np.random.default_rng(0)
    return [_random_array(one, count, generator) for one in inputs]


def _random_array(one: Tensor, count: int, generator: np.random.Generator) -> Array:
    shape = (count, *one.sample)
    if one.dtype == "str":
        return np.full(shape, b"text")
    dtype = np.dtype(numpy_type(one.dtype))
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype == np.uint8:
        return generator.integers(0, 256, shape).astype(dtype)
    # Integers are most often indices into a table of unknown size: 0 and 1 are nearly always valid.
    return generator.integers(0, 2, shape).astype(dtype)
