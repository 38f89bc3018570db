"""numpy arrays: the rows of one `.npy` or `.npz` file, or a folder of `.npy` files that are an element each."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards import tensors
from flatout.data.shards.example import Element
from flatout.data.shards.schema import Feature
from flatout.data.shards.source import Corrupt, Numbers
from flatout.data.shards.sources.folder import FileListing, Folder, list_files
from flatout.model.errors import DataUnusable
from flatout.process import array_files

SUFFIXES = frozenset((".npy", ".npz"))
VALUE = "value"
OVERHEAD = 96
UNREADABLE = (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile)


@functools.lru_cache(maxsize=4)
def _arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name. A `.npy` stays on disk; the parts of a `.npz` are unpacked once per process."""
    if path.endswith(".npz"):
        return dict(sorted(array_files.read(path).items()))
    return {VALUE: np.load(path, mmap_mode="r", allow_pickle=False)}


@dataclass(frozen=True)
class ArrayFile:
    """The rows of one file: the first axis of each array counts the elements."""

    path: str
    numbers: Numbers
    features: tuple[Feature, ...]
    status: tuple[int, int]
    kind: ClassVar[str] = "arrays"
    classes: ClassVar[tuple[str, ...]] = ()
    notes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        try:
            arrays = _arrays(str(path.absolute()))
        except UNREADABLE as error:
            raise DataUnusable(
                f"{path} cannot be read as numpy arrays: {error}. Save them again with `numpy.save` or `numpy.savez`."
            ) from None
        lengths = {name: array.shape[:1] for name, array in arrays.items()}
        if len(set(lengths.values())) != 1 or () in lengths.values() or (0,) in lengths.values():
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise DataUnusable(
                f"The arrays of {path} do not have the same length along their first axis: {shapes or 'none'}. Save "
                "them with one length."
            )
        features = tuple(
            _feature(name, tensors.dtype_of(array.dtype), array.shape[1:], path) for name, array in arrays.items()
        )
        status = path.stat()
        count = next(iter(lengths.values()))[0]
        return cls(str(path.absolute()), np.arange(count), features, (status.st_size, status.st_mtime_ns))

    @property
    def layout(self) -> dict[str, Any]:
        return {"file": os.path.basename(self.path)}

    def __len__(self) -> int:
        return len(self.numbers)

    def sizes(self) -> Numbers:
        arrays = _arrays(self.path)
        size = sum(array[0].nbytes + len(name) + OVERHEAD for name, array in arrays.items())
        size += sum(8 * array[0].size for array in arrays.values() if array.dtype.kind in "US")
        return np.full(len(self), size, np.int64)

    def fingerprint(self) -> str:
        return hashlib.sha256(repr((self.features, self.status)).encode()).hexdigest()

    def select(self, numbers: Numbers) -> ArrayFile:
        return dataclasses.replace(self, numbers=self.numbers[numbers])

    def name(self, number: int) -> str:
        return f"{os.path.basename(self.path)}, row {int(self.numbers[number])}"

    def read(self, number: int) -> Element:
        arrays, element = _arrays(self.path), {}
        for one in self.features:
            element.update(tensors.stored(one, arrays[one.name][int(self.numbers[number])]))
        return element


def _feature(name: str, dtype: str, shape: tuple[int | None, ...], path: Path) -> Feature:
    one = tensors.feature(name, dtype, shape)
    if one is None:
        raise DataUnusable(
            f"{path}: {name} has the type {dtype}, which TensorFlow does not support. Convert it to numbers first."
        )
    return one


@dataclass(frozen=True)
class Arrays(Folder):
    """A folder of `.npy` files, by class. They should have one type; the shape may vary."""

    array: Feature = dataclasses.field(default_factory=lambda: Feature(VALUE, "raw", "float32"))
    kind: ClassVar[str] = "arrays"
    content: ClassVar[str] = VALUE

    @classmethod
    def open(cls, root: Path) -> Arrays:
        files = list_files(root, (".npy",), "numpy files")
        return cls(files, _common_feature(files, root))

    @property
    def features(self) -> tuple[Feature, ...]:
        return (self.array, *super().features[1:])

    def fingerprint(self) -> str:
        return super().fingerprint() + repr(self.array)

    def sizes(self) -> Numbers:
        return super().sizes() + 10 * len(self.array.shape) + OVERHEAD

    def read(self, number: int) -> Element:
        try:
            array = np.load(io.BytesIO(self.bytes_of(number)), allow_pickle=False)
        except UNREADABLE as error:
            raise Corrupt(f"it is not a numpy file: {error}") from None
        fits = len(array.shape) == len(self.array.shape) and all(
            expected in (None, length) for expected, length in zip(self.array.shape, array.shape, strict=True)
        )
        if not fits or tensors.dtype_of(array.dtype) != self.array.dtype:
            raise Corrupt(
                f"it contains {array.dtype} {array.shape}; {self.array.dtype} {self.array.shape} was expected"
            )
        return self.labelled(number, dict(tensors.stored(self.array, array)))


def _common_feature(files: FileListing, root: Path) -> Feature:
    """The type and rank of most files, with the lengths that all of those share."""
    counts: dict[tuple[str, tuple[int, ...]], int] = {}
    for name in files.names:
        try:
            header = _header(os.path.join(files.root, name))
        except UNREADABLE:
            continue
        counts[header] = counts.get(header, 0) + 1
    if not counts:
        raise DataUnusable(
            f"None of the .npy files in {root} can be read as a numpy array. Save them with `numpy.save`."
        )
    kinds: dict[tuple[str, int], int] = {}
    for (dtype, shape), count in counts.items():
        kinds[dtype, len(shape)] = kinds.get((dtype, len(shape)), 0) + count
    dtype, rank = max(sorted(kinds), key=lambda kind: kinds[kind])
    shapes = [shape for found, shape in counts if found == dtype and len(shape) == rank]
    common = tuple(lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*shapes, strict=True))
    return _feature(VALUE, dtype, common, root)


def _header(path: str) -> tuple[str, tuple[int, ...]]:
    with open(path, "rb") as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    return tensors.dtype_of(dtype), shape
