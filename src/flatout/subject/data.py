"""Samples from where the user keeps them: .npz and .npy files, directories of TFRecords, functions.

All end as plain arrays in memory, named or in order, and labels where there are any. Of what comes one by one (records,
datasets) no more is read than is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import DataUnusable
from flatout.subject.original import Declared, named
from flatout.subject.subject import Array

LABELS = ("y", "label", "labels", "target", "targets", "y_val", "y_test", "y_true", "test_labels")
SAMPLES = ("x", "inputs", "input", "features", "data", "images", "x_val", "x_test", "test_images")
"""Names of arrays in .npz files, as people give them. `x_train` is not among them: a model is judged on other data."""


@dataclass
class Samples:
    arrays: dict[str, Array]
    """Each with samples first. Names are `0`, `1`, … where the source has only an order."""
    labels: list[Array] = field(default_factory=list)
    origin: str = ""

    def __len__(self) -> int:
        return min(len(array) for array in self.arrays.values())


def gather(source: str, inputs: Sequence[Declared] | None, features: str | None, most: int) -> Samples:
    path = Path(source)
    if path.is_dir():
        from flatout.subject.records import read

        if features is None:
            raise DataUnusable(
                f"{source} is a directory: record files need --features FILE, a JSON that describes their features, "
                'such as {"image": {"dtype": "float32", "shape": [28, 28, 1]}, "label": {"dtype": "int64"}}.'
            )
        return read(path, _json(features), most)
    if path.exists():
        return _file(path)
    if ":" in source and os.sep not in source:
        return of_object(named(source)(), inputs, most, source)
    raise DataUnusable(
        f"There is no data at {source}. Give an .npz or .npy file, a directory of TFRecords, or `module:function`."
    )


def _json(path: str) -> dict[str, Any]:
    try:
        return dict(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise DataUnusable(f"{path} cannot be read as the description of features: {error}") from None


def _file(path: Path) -> Samples:
    try:
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return Samples({"0": stored}, origin=str(path))
        with stored:
            return _named({name: stored[name] for name in stored.files}, str(path))
    except (OSError, ValueError, EOFError, KeyError) as error:
        hint = (
            "It holds Python objects, which would run code when read. Save plain arrays."
            if "allow_pickle" in str(error)
            else "An .npz or .npy file that numpy wrote was expected."
        )
        raise DataUnusable(f"{path} cannot be read: {error}. {hint}") from None


def _named(arrays: dict[str, Array], origin: str) -> Samples:
    if not arrays:
        raise DataUnusable(f"{origin} is empty.")
    lower = {name.lower(): name for name in arrays}
    label = next((lower[name] for name in LABELS if name in lower), None)
    rest = {name: array for name, array in arrays.items() if name != label}
    labels = [arrays[label]] if label is not None else []
    chosen = next((lower[name] for name in SAMPLES if name in lower), None)
    if chosen in rest and any(name.lower() in ("x_train", "y_train") for name in rest):
        rest = {chosen: rest[chosen]}  # a data set in its two parts: the one that was not trained on
    return Samples(rest, labels, origin)


def of_object(given: Any, inputs: Sequence[Declared] | None, most: int, origin: str) -> Samples:
    """Arrays, a tuple of inputs and labels, a dictionary, or a tf.data.Dataset of any of these."""
    if hasattr(given, "element_spec") or (hasattr(given, "__iter__") and hasattr(given, "take")):
        given = _collected(given, inputs, most)
    if isinstance(given, (tuple, list)) and len(given) in (2, 3) and (inputs is None or len(inputs) != len(given)):
        return Samples(_columns(given[0]), _labels(given[1]), origin)
    if isinstance(given, Mapping) and all(not isinstance(value, Mapping) for value in given.values()):
        return _named({str(name): np.asarray(value) for name, value in given.items()}, origin)
    return Samples(_columns(given), [], origin)


def _columns(given: Any) -> dict[str, Array]:
    if isinstance(given, Mapping):
        return {str(name): np.asarray(value) for name, value in given.items()}
    if isinstance(given, (tuple, list)) and given and hasattr(given[0], "shape"):
        return {str(i): np.asarray(value) for i, value in enumerate(given)}
    return {"0": np.asarray(given)}


def _labels(given: Any) -> list[Array]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [np.asarray(given[name]) for name in sorted(given)]
    if isinstance(given, tuple):
        return [np.asarray(value) for value in given]
    return [np.asarray(given)]


def _collected(dataset: Iterable[Any], inputs: Sequence[Declared] | None, most: int) -> Any:
    """The elements of a dataset put together; in batches or one by one, which the rank of the first input tells."""
    import tensorflow as tf

    elements: list[Any] = []
    count, batched = 0, True
    for element in dataset:
        flat = [np.asarray(value) for value in tf.nest.flatten(element)]
        if not elements:
            structure = element
            batched = inputs is None or flat[0].ndim >= len(inputs[0].shape)
        elements.append(flat)
        count += len(flat[0]) if batched else 1
        if count >= most:
            break
    if not elements:
        raise DataUnusable("The dataset has no elements.")
    join = np.concatenate if batched else np.stack
    try:
        columns = [join(column) for column in zip(*elements, strict=True)]
    except ValueError as error:
        raise DataUnusable(
            f"The elements of the dataset have different shapes: {error}. Pad them, or batch them alike."
        ) from None
    return tf.nest.pack_sequence_as(structure, columns)
