"""Reads samples from a directory of TFRecords, by a description of their features.

    {"image": {"dtype": "uint8", "shape": [28, 28, 1], "encoding": "raw"},
     "label": {"dtype": "int64", "shape": []}}

`encoding` is the content of a bytes feature: `raw` numbers, or an `image` (JPEG, PNG, BMP, GIF). The feature named
`label` (or one with `"label": true`) is the label.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import DataUnusable
from flatout.subject.samples import LABELS, Samples

_GZIP = b"\x1f\x8b\x08"


def read(directory: Path, features: dict[str, dict[str, Any]], limit: int) -> Samples:
    import tensorflow as tf

    files = sorted(str(path) for path in directory.rglob("*") if path.is_file() and "tfrecord" in path.name.lower())
    if not files:
        raise DataUnusable(f"{directory} has no record files: no file name in it contains `tfrecord`.")
    specification = {name: _feature(tf, name, entry) for name, entry in features.items()}
    records = _dataset(tf, files).take(limit).batch(256)
    columns: dict[str, list[Any]] = {name: [] for name in features}
    try:
        for batch in records:
            parsed = tf.io.parse_example(batch, specification)
            for name, entry in features.items():
                columns[name].append(_decoded(tf, parsed[name], entry).numpy())
    except tf.errors.OpError as error:
        raise DataUnusable(
            f"The records in {directory} do not match the description of their features: {error.message}"
        ) from None
    if not columns or not next(iter(columns.values())):
        raise DataUnusable(f"The record files in {directory} are empty. At least one sample is needed.")
    arrays = {name: _joined(name, parts, directory) for name, parts in columns.items()}
    labels = [name for name, entry in features.items() if entry.get("label") or name.lower() in LABELS]
    return Samples(
        {name: array for name, array in arrays.items() if name not in labels},
        [arrays[name] for name in labels],
        str(directory),
    )


def _dataset(tf: Any, files: list[str]) -> Any:
    """All records, in the order of the files: some may be compressed and others not."""
    groups = [(kind, list(some)) for kind, some in itertools.groupby(files, _compression)]
    datasets = [tf.data.TFRecordDataset(some, compression_type=kind) for kind, some in groups]
    return functools.reduce(lambda found, more: found.concatenate(more), datasets)


def _compression(file: str) -> str | None:
    try:
        with open(file, "rb") as stream:
            return "GZIP" if stream.read(len(_GZIP)) == _GZIP else None
    except OSError:
        return None  # TensorFlow says what is wrong with it


def _joined(name: str, parts: list[Any], directory: Path) -> Any:
    shapes = sorted({part.shape[1:] for part in parts})
    if len(shapes) > 1:
        raise DataUnusable(
            f"Feature {name!r} has samples of different shapes in {directory}, such as {shapes[0]} and {shapes[1]}. "
            "Write records in which all have one shape."
        )
    return np.concatenate(parts)


def _feature(tf: Any, name: str, entry: dict[str, Any]) -> Any:
    if not isinstance(entry, dict) or "dtype" not in entry:
        raise DataUnusable(f"The description of feature {name!r} needs a dtype, such as float32, int64 or string.")
    if entry.get("encoding"):
        return tf.io.FixedLenFeature([], tf.string)
    dtype = {"float32": tf.float32, "int64": tf.int64, "string": tf.string}.get(entry["dtype"])
    if dtype is None:
        raise DataUnusable(
            f"Feature {name!r}: records hold float32, int64 and string; {entry['dtype']} needs an `encoding` "
            "(raw or image)."
        )
    return tf.io.FixedLenFeature(entry.get("shape", []), dtype)


def _decoded(tf: Any, column: Any, entry: dict[str, Any]) -> Any:
    encoding = entry.get("encoding")
    if not encoding:
        return column
    if encoding == "raw":
        return tf.reshape(tf.io.decode_raw(column, entry["dtype"]), [-1, *entry.get("shape", [])])
    if encoding == "image":
        shape = entry.get("shape", [None, None, 3])
        pictures = [tf.io.decode_image(item, channels=shape[-1], expand_animations=False) for item in column]
        return tf.cast(tf.stack(pictures), entry["dtype"])
    raise DataUnusable(f"An encoding is raw or image, not {encoding!r}.")
