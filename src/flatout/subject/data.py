"""Reads samples: .npz and .npy files, directories of TFRecords, functions.

The result is always arrays in memory, by name or in order, with labels where there are any. From records and datasets
no more elements are read than are needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model import json_text
from flatout.model.errors import DataUnusable
from flatout.process import array_files
from flatout.subject import records
from flatout.subject.original import DeclaredInput, import_object
from flatout.subject.samples import LABELS, SAMPLES, Samples
from flatout.subject.subject import Array


def read_samples(source: str, inputs: Sequence[DeclaredInput] | None, features: str | None, limit: int) -> Samples:
    path = Path(source)
    if path.is_dir():
        if features is None:
            raise DataUnusable(
                f"{source} is a directory: record files need --features FILE, a JSON that describes their features, "
                'such as {"image": {"dtype": "float32", "shape": [28, 28, 1]}, "label": {"dtype": "int64"}}.'
            )
        return records.read(path, _read_features(features), limit)
    if path.exists():
        return _read_file(path)
    if ":" in source and os.sep not in source:
        return samples_from_object(import_object(source)(), inputs, limit, source)
    raise DataUnusable(
        f"There is no data at {source}. Give an .npz or .npy file, a directory of TFRecords, or `module:function`."
    )


def _read_features(path: str) -> dict[str, Any]:
    try:
        return json_text.read_object(path, largest=64 << 20)
    except (OSError, ValueError) as error:
        raise DataUnusable(f"{path} cannot be read as a JSON description of features: {error}") from None


def _read_file(path: Path) -> Samples:
    try:
        arrays = array_files.read(path)
    except (OSError, ValueError) as error:
        hint = (
            "It contains Python objects, which would run code when read. Save plain arrays."
            if "allow_pickle" in str(error)
            else "An .npz or .npy file written by numpy was expected."
        )
        raise DataUnusable(f"{path} cannot be read: {error}. {hint}") from None
    return Samples({"0": arrays[""]}, origin=str(path)) if "" in arrays else _from_named_arrays(arrays, str(path))


def _from_named_arrays(arrays: dict[str, Array], origin: str) -> Samples:
    if not arrays:
        raise DataUnusable(f"{origin} is empty. At least one sample is needed.")
    lower = {name.lower(): name for name in arrays}
    label = next((lower[name] for name in LABELS if name in lower), None)
    rest = {name: array for name, array in arrays.items() if name != label}
    labels = [arrays[label]] if label is not None else []
    known = [lower[name] for name in SAMPLES if name in lower]
    same_part = [name for name in known if label is not None and _part(name) == _part(label)]
    chosen = next(iter([*same_part, *known]), None)
    if chosen in rest and any(name.lower() in ("x_train", "y_train") for name in rest):
        rest = {chosen: rest[chosen]}  # the file has training and test data: only the test data is used
    return Samples(rest, labels, origin)


def _part(name: str) -> str:
    """Of a file with several parts: that of validation or of the test."""
    return next((part for part in ("val", "test") if part in name.lower().split("_")), "")


def samples_from_object(value: Any, inputs: Sequence[DeclaredInput] | None, limit: int, origin: str) -> Samples:
    """Arrays, a tuple of inputs and labels, a dictionary, or a tf.data.Dataset of any of these."""
    is_array = hasattr(value, "shape")  # arrays and tables have `take` as well
    if hasattr(value, "element_spec") or (hasattr(value, "__iter__") and hasattr(value, "take") and not is_array):
        value = _collect(value, inputs, limit)
    if isinstance(value, (tuple, list)) and len(value) in (2, 3) and not _are_inputs(value, inputs):
        names = tuple(sorted(map(str, value[1]))) if isinstance(value[1], Mapping) else ()
        columns = _columns(value[0])
        count = next((array.shape[:1] for array in columns.values()), ())
        return Samples(columns, _labels(value[1], count), origin, names)
    if isinstance(value, Mapping) and all(not isinstance(item, Mapping) for item in value.values()):
        return _from_named_arrays({str(name): _array(item) for name, item in value.items()}, origin)
    return Samples(_columns(value), [], origin)


def _are_inputs(value: Sequence[Any], inputs: Sequence[DeclaredInput] | None) -> bool:
    """Whether these are one array for each input, and not a pair of inputs and labels: then the first of them has
    arrays of its own where the model has several inputs."""
    several = isinstance(value[0], (Mapping, tuple, list)) and len(value[0]) > 0
    if several and (isinstance(value[0], Mapping) or hasattr(value[0][0], "shape")):
        return False
    return inputs is not None and len(inputs) == len(value)


def _columns(given: Any) -> dict[str, Array]:
    if isinstance(given, Mapping):
        return {str(name): _array(value) for name, value in given.items()}
    if isinstance(given, (tuple, list)) and given and hasattr(given[0], "shape"):
        return {str(i): _array(value) for i, value in enumerate(given)}
    return {"0": _array(given)}


def _labels(given: Any, count: tuple[int, ...]) -> list[Array]:
    """`count`: of the samples, as a shape. It tells a list of arrays, one for each output, from one of samples."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [_array(given[name]) for name in sorted(given, key=str)]
    if isinstance(given, tuple) or (isinstance(given, list) and _have_length(given, count)):
        return [_array(value) for value in given]
    return [_array(given)]


def _have_length(arrays: Sequence[Any], count: tuple[int, ...]) -> bool:
    return (len(arrays),) != count and len(arrays) > 0 and all(_array(one).shape[:1] == count != () for one in arrays)


def _array(given: Any) -> Array:
    try:
        return np.asarray(given)
    except ValueError as error:
        raise DataUnusable(f"The samples have different shapes: {error}. Pad or cut them to one shape.") from None


def _collect(dataset: Iterable[Any], inputs: Sequence[DeclaredInput] | None, limit: int) -> Any:
    """The elements of a dataset, joined."""
    import tensorflow as tf

    elements: list[Any] = []
    count, batched = 0, True
    for element in dataset:
        flat = [np.asarray(value) for value in tf.nest.flatten(element)]
        if not elements:
            structure = element
            batched = _are_batches(element, flat[0].ndim, inputs)
        elements.append(flat)
        count += len(flat[0]) if batched else 1
        if count >= limit:
            break
    if not elements:
        raise DataUnusable("The dataset has no elements. At least one sample is needed.")
    join = np.concatenate if batched else np.stack
    try:
        columns = [join(column) for column in zip(*elements, strict=True)]
    except ValueError as error:
        raise DataUnusable(
            f"The elements of the dataset have different shapes: {error}. Pad them to one shape."
        ) from None
    return tf.nest.pack_sequence_as(structure, columns)


def _are_batches(element: Any, rank: int, inputs: Sequence[DeclaredInput] | None) -> bool:
    """Whether the elements are batches or samples: the number of dimensions of one input decides, by its name where it
    has one. `rank`: of the first array, which is not that of the first input where names are sorted."""
    features = element[0] if isinstance(element, (tuple, list)) and element else element
    if isinstance(features, Mapping):
        for one in inputs or ():
            if one.name in features:
                return np.ndim(features[one.name]) >= len(one.shape)
    return inputs is None or rank >= len(inputs[0].shape)
