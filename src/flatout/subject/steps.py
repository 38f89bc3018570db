"""Preprocessing in plain Python and numpy: for small models, calling TensorFlow costs more than the rest.

The steps are data and not code: a list of operations with the slots that they read and write. `numpy_steps` makes them
of a stage's graph. Loaders of artefacts contain a copy of this module, from its first function on.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np

from flatout.subject.fingerprint import fingerprint


def load_steps(directory: Path, name: str) -> Any:
    """A function from arrays to arrays: the steps in `name`.json, with the constants and tables in `name`.npz."""
    plan = json.loads((directory / f"{name}.json").read_text())
    with np.load(directory / f"{name}.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    values = [None] * plan["slots"]
    for slot, key, is_text in plan["constants"]:
        values[slot] = texts_of(arrays[key]) if is_text else arrays[key]
    steps = [(STEPS[one["op"]](arrays, **one["with"]), one["from"], one["to"]) for one in plan["steps"]]
    inputs, outputs = plan["inputs"], plan["outputs"]

    def run(given: Any) -> Any:
        slots = values.copy()
        for (slot, is_text), array in zip(inputs, given, strict=True):
            slots[slot] = texts_of(array) if is_text else np.asarray(array)
        for function, sources, targets in steps:
            made = function(*[slots[source] for source in sources])
            if len(targets) == 1:
                slots[targets[0]] = made
            else:
                for target, one in zip(targets, made, strict=True):
                    slots[target] = one
        return [slots[slot] for slot in outputs]

    return run


def texts_of(array: Any) -> Any:
    """Strings as TensorFlow has them: bytes, in UTF-8."""
    array = np.asarray(array)
    made = np.empty(array.size, object)
    made[:] = [one if type(one) is bytes else one.encode("utf-8") for one in array.ravel().tolist()]
    return made.reshape(array.shape)


def lookup(arrays: Any, keys: str, values: str) -> Any:
    """Find each key in a table; what it lacks is the default."""
    found = arrays[values]
    get, dtype = dict(zip(arrays[keys].tolist(), found.tolist(), strict=True)).get, found.dtype

    def run(wanted: Any, default: Any) -> Any:
        other = default.item()
        return np.array([get(one, other) for one in wanted.ravel().tolist()], dtype).reshape(wanted.shape)

    return run


def bucketize(arrays: Any, boundaries: str) -> Any:
    """The number of boundaries that are not above each value."""
    limits = arrays[boundaries].tolist()

    def run(x: Any) -> Any:
        return np.array([bisect_right(limits, one) for one in x.ravel().tolist()], np.int32).reshape(x.shape)

    return run


def bincount(arrays: Any, binary: bool) -> Any:
    """How often each number below a size occurs in a row, or whether it does."""

    def run(x: Any, size: Any, weights: Any) -> Any:
        rows = x if x.ndim == 2 else x[None]
        made = np.zeros((len(rows), int(size)), weights.dtype)
        for row, numbers in zip(made, rows.tolist(), strict=True):
            for number in numbers:
                if number < 0:
                    raise ValueError("a number to be counted is negative")
                if number < size:
                    row[number] = 1 if binary else row[number] + 1
        return made if x.ndim == 2 else made[0]

    return run


def on_texts(function: Any) -> Any:
    """A function of bytes, for arrays of them."""

    def run(x: Any) -> Any:
        made = np.empty(x.size, object)
        made[:] = [function(one) for one in x.ravel().tolist()]
        return made.reshape(x.shape)

    return run


def replace(arrays: Any, pattern: str, by: str) -> Any:
    substitute, rewrite = re.compile(pattern.encode()).sub, by.encode()
    return on_texts(lambda text: substitute(rewrite, text))


def split_words(arrays: Any) -> Any:
    """Words by row: (row and position of each, the words, number of rows and of the most words)."""

    def run(x: Any, separator: Any) -> Any:
        rows = [text.split() for text in x.tolist()]
        words = np.empty(sum(map(len, rows)), object)
        words[:] = [word for row in rows for word in row]
        places = [(i, k) for i, row in enumerate(rows) for k in range(len(row))]
        return (
            np.array(places, np.int64).reshape(-1, 2),
            words,
            np.array([len(rows), max(map(len, rows), default=0)], np.int64),
        )

    return run


def rows_to_array(arrays: Any) -> Any:
    """Values with the number of their row, as an array of rows that are cut or filled up to one length."""

    def run(shape: Any, values: Any, default: Any, count: Any, row_of: Any) -> Any:
        rows: Any = [[] for _ in range(int(count))]
        for row, value in zip(row_of.tolist(), values.tolist(), strict=True):
            rows[row].append(value)
        length = int(shape[1]) if shape[1] >= 0 else max(map(len, rows), default=0)
        made = np.full((len(rows), length), default, values.dtype)
        for target, row in zip(made, rows, strict=True):
            target[: len(row)] = row[:length]
        return made

    return run


def strided_slice(arrays: Any, begins: int, ends: int, shrinks: int) -> Any:
    """Bits of `begins` and `ends`: where a slice has no such end; of `shrinks`: where it is a single index."""

    def run(x: Any, begin: Any, end: Any, stride: Any) -> Any:
        places: Any = []
        for i, (first, last, step) in enumerate(zip(begin.tolist(), end.tolist(), stride.tolist(), strict=True)):
            if shrinks >> i & 1:
                places.append(first)
            else:
                places.append(slice(None if begins >> i & 1 else first, None if ends >> i & 1 else last, step))
        return np.asarray(x[tuple(places)])

    return run


def bucket(arrays: Any, count: int) -> Any:
    """The bucket of each text, by its hash."""

    def run(x: Any) -> Any:
        return np.array([fingerprint(one) % count for one in x.ravel().tolist()], np.int64).reshape(x.shape)

    return run


def plain(function: Any) -> Any:
    """A step without options."""
    return lambda arrays: function


STEPS = {
    "lookup": lookup,
    "bucketize": bucketize,
    "bincount": bincount,
    "bucket": bucket,
    "lower": plain(on_texts(bytes.lower)),
    "replace": replace,
    "split": split_words,
    "rows": rows_to_array,
    "slice": strided_slice,
    "cast": lambda arrays, dtype: lambda x: x.astype(dtype),
    "reshape": plain(lambda x, shape: x.reshape(shape)),
    "expand": plain(lambda x, axis: np.expand_dims(x, int(axis))),
    "squeeze": lambda arrays, axes: lambda x: np.squeeze(x, tuple(axes) or None),
    "equal": plain(np.equal),
    "not-equal": plain(np.not_equal),
    "greater": plain(np.greater),
    "less": plain(np.less),
    "select": plain(np.where),
    "add": plain(np.add),
    "subtract": plain(np.subtract),
    "multiply": plain(np.multiply),
    "maximum": plain(np.maximum),
    "minimum": plain(np.minimum),
    "largest": lambda arrays, keep: lambda x, axes: np.max(x, tuple(np.ravel(axes).tolist()), keepdims=keep),
    "size": lambda arrays, dtype: lambda x: np.array(x.size, dtype),
    "shape": lambda arrays, dtype: lambda x: np.array(x.shape, dtype),
}
