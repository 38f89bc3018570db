"""The files with what a cell has made: all values in one pickle, and the memory of their arrays beside it.

An array that has its own memory gets memory of its own again, with the axes in the same order; one that shows a part of
another one shows that part again. `plain` has said before that the values can be kept.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flatout.trial.child.kept.plain import NotPlain, is_allowed, is_array, root

VALUES, ARRAYS = "values", "arrays"


def store(directory: Path, values: Mapping[str, Any], room: int) -> int:
    """Write them into a new directory, and return the bytes of its files. Raises `NotPlain`; there is no directory
    then."""
    try:
        directory.mkdir(mode=0o700)
        with _Limited(directory / ARRAYS, room) as arrays, _Limited(directory / VALUES, room) as stream:
            _Writer(stream, arrays).dump(dict(values))
            size = stream.size + arrays.size
        if size > room:
            raise too_large(room)
        return size
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)
        if isinstance(error, NotPlain) or not isinstance(error, Exception):
            raise
        raise NotPlain(f"it cannot be written ({type(error).__name__}: {error})") from None


def restore(directory: Path) -> dict[str, Any]:
    with open(directory / ARRAYS, "rb") as arrays, open(directory / VALUES, "rb") as stream:
        reader = _Reader(stream, arrays)
        values: dict[str, Any] = reader.load()
        reader.lock()
        return values


def too_large(room: int) -> NotPlain:
    return NotPlain(f"what it makes takes more than {room / 2**30:.1f} GB")


class _Limited:
    """A file that holds so many bytes at most."""

    def __init__(self, path: Path, room: int) -> None:
        self._file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")  # noqa: SIM115
        self._room = room
        self.size = 0

    def __enter__(self) -> _Limited:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self.size += count
        if self.size > self._room:
            raise too_large(self._room)
        self._file.write(data)
        return count


# ── written ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _array(*arguments: Any) -> None:
    """Stands for `_Reader.array` in the pickle."""


def _objects(*arguments: Any) -> None:
    """Stands for `_Reader.objects`."""


def _part(*arguments: Any) -> None:
    """Stands for `_Reader.part`."""


class _Writer(pickle.Pickler):
    def __init__(self, stream: _Limited, arrays: _Limited) -> None:
        super().__init__(stream, protocol=5)
        self._arrays = arrays

    def reducer_override(self, value: Any) -> Any:
        if is_array(value):
            return self._reduced(value)
        if value is _array or value is _objects or value is _part or is_allowed(value):
            return NotImplemented
        raise NotPlain(f"it makes a {type(value).__name__}, which is no plain data")

    def _reduced(self, value: Any) -> Any:
        whole = root(value)
        writeable = value.flags.writeable
        if whole is not value and value.nbytes:
            offset = _address(value) - _address(whole)
            return _part, (whole, offset, value.shape, value.strides, value.dtype, writeable)
        order = _order(value)
        plain = value.transpose(order)
        if not plain.flags.c_contiguous:
            raise NotPlain("the memory of one of its arrays has gaps")
        if value.dtype == object:
            return _objects, (plain.shape, order, plain.reshape(-1).tolist(), writeable)
        place = self._arrays.size
        if value.nbytes:
            self._arrays.write(_memory(plain).data)
        return _array, (place, value.dtype, plain.shape, order, writeable)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _order(array: Any) -> tuple[int, ...]:
    """The axes in the order in which they lie in memory, the slowest first."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


def _memory(plain: Any) -> Any:
    """Its bytes as an array."""
    return plain.reshape(-1).view("u1")


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Reader(pickle.Unpickler):
    def __init__(self, stream: Any, arrays: Any) -> None:
        super().__init__(stream)
        self._arrays = arrays
        self._locked: list[Any] = []

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__:
            return {"_array": self.array, "_objects": self.objects, "_part": self.part}[name]
        return super().find_class(module, name)

    def array(self, place: int, dtype: Any, shape: Sequence[int], order: Sequence[int], writeable: bool) -> Any:
        found = _empty(shape, dtype, order)
        plain = found.transpose(order)
        if plain.nbytes:
            memory = _memory(plain).data
            self._arrays.seek(place)
            while len(memory):
                count = self._arrays.readinto(memory)
                if not count:
                    raise EOFError("the file with the arrays is too short")
                memory = memory[count:]
        return self._with(found, writeable)

    def objects(self, shape: Sequence[int], order: Sequence[int], values: list[Any], writeable: bool) -> Any:
        found = _empty(shape, object, order)
        flat = found.transpose(order).reshape(-1)
        for place, value in enumerate(values):
            flat[place] = value
        return self._with(found, writeable)

    def part(
        self, whole: Any, offset: int, shape: Sequence[int], strides: Sequence[int], dtype: Any, writeable: bool
    ) -> Any:
        import numpy as np

        plain = whole.transpose(_order(whole))
        if dtype.hasobject:
            first = plain.reshape(-1)[offset // dtype.itemsize :]
            found = np.lib.stride_tricks.as_strided(first, shape, strides)
        else:
            found = np.ndarray(shape, dtype, _memory(plain), offset, strides)
        return self._with(found, writeable)

    def lock(self) -> None:
        """At the end: a part that can be written may belong to an array that cannot."""
        for array in self._locked:
            array.flags.writeable = False

    def _with(self, array: Any, writeable: bool) -> Any:
        if not writeable:
            self._locked.append(array)
        return array


def _empty(shape: Sequence[int], dtype: Any, order: Sequence[int]) -> Any:
    """An array with its own memory, whose axes lie in it in this order; `shape` is that of the axes in this order."""
    import numpy as np

    back = tuple(order.index(axis) for axis in range(len(order)))
    model = np.empty(shape, dtype).transpose(back)  # nothing touches its memory
    found = np.empty_like(model, order="K", subok=False)
    return found if found.transpose(order).flags.c_contiguous else model
