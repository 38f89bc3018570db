"""Reads samples from a file: the path of an .npz, and the names of its arrays."""

from __future__ import annotations

import math
import zipfile

import numpy as np

from flatout.subject import Array


def first_rows(feeds: list[str], count: int) -> list[Array]:
    """The first rows of each array, without reading the rest."""
    path, *names = feeds
    with zipfile.ZipFile(path) as stored:
        return [_first_rows(stored, f"{name}.npy", count) for name in names]


def _first_rows(stored: zipfile.ZipFile, name: str, count: int) -> Array:
    with stored.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        shape, by_columns, dtype = header(stream) if header is not None else ((), True, np.dtype("V1"))
        if not by_columns and shape and shape[0] > count and not dtype.hasobject:
            row_bytes = dtype.itemsize * math.prod(shape[1:])
            rows = np.frombuffer(bytearray(stream.read(count * row_bytes)), dtype)
            return rows.reshape(count, *shape[1:])
    with stored.open(name) as stream:
        whole: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return whole[:count] if whole.ndim else whole


def read_arrays(feeds: list[str]) -> list[Array]:
    path, *names = feeds
    with np.load(path, allow_pickle=False) as stored:
        return [stored[name] for name in names]
