"""`tf.train.Example`, encoded and decoded without TensorFlow.

An element is a dictionary of named values; a value is bytes, integers (int64) or floating point numbers (float32), one
or several. Names are written in sorted order, so that the same element always has the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from flatout.trace import wire

Value = bytes | int | float | Sequence[bytes] | NDArray[np.int64] | NDArray[np.float32]
Element = Mapping[str, Value]
Decoded = dict[str, "list[bytes] | NDArray[np.int64] | NDArray[np.float32]"]

BYTES, FLOATS, INTEGERS = 1, 2, 3
"""The fields of `Feature`: one for each of its three kinds of list."""


def encode(element: Element) -> bytes:
    entries = (_field(1, _field(1, name.encode()) + _field(2, _feature(element[name]))) for name in sorted(element))
    return _field(1, b"".join(entries))


def _feature(value: Value) -> bytes:
    if isinstance(value, bytes):
        return _field(BYTES, _field(1, value))
    if isinstance(value, bool | int | np.integer):
        return _field(INTEGERS, _field(1, _varint(int(value) & 0xFFFF_FFFF_FFFF_FFFF)))
    if isinstance(value, float | np.floating):
        return _field(FLOATS, _field(1, np.float32(value).tobytes()))
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return _field(INTEGERS, _field(1, b"".join(_varint(n & 0xFFFF_FFFF_FFFF_FFFF) for n in value.ravel().tolist())))
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return _field(FLOATS, _field(1, value.astype("<f4").tobytes()))
    if all(isinstance(item, bytes) for item in value):
        return _field(BYTES, b"".join(_field(1, bytes(item)) for item in value))
    raise TypeError(f"A value of an element is bytes, int64 or float32, not {type(value).__name__}.")


def _field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | wire.LENGTH,)) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(record: bytes) -> Decoded:
    """Every value as a list or an array. Raises wire.WireError for bytes that are not an Example."""
    data = memoryview(record)
    element: Decoded = {}
    for features in _children(data, 0, len(data), 1):
        for entry in _children(data, *features, 1):
            name, feature = "", entry[:1] * 2
            for number, _, start, end in wire.fields(data, *entry):
                if number == 1:
                    name = str(data[start:end], "utf-8", "replace")
                elif number == 2:
                    feature = start, end
            element[name] = _values(data, *feature)
    return element


def _values(data: memoryview, start: int, end: int) -> list[bytes] | NDArray[np.int64] | NDArray[np.float32]:
    for kind, _, begin, stop in wire.fields(data, start, end):
        if kind == BYTES:
            return [bytes(data[first:last]) for first, last in _children(data, begin, stop, 1)]
        if kind == FLOATS:
            return np.frombuffer(b"".join(data[a:b] for a, b in _children(data, begin, stop, 1)), "<f4")
        if kind == INTEGERS:
            return np.array(_integers(data, begin, stop), np.int64)
    return []


def _integers(data: memoryview, start: int, end: int) -> list[int]:
    found: list[int] = []
    for _, kind, begin, stop in wire.fields(data, start, end):
        if kind == wire.VARINT:  # not packed, as some writers do
            found.append(wire.signed(begin))
            continue
        while begin < stop:
            value, begin = wire.varint(data, begin, stop)
            found.append(wire.signed(value))
    return found


def _children(data: memoryview, start: int, end: int, wanted: int) -> list[tuple[int, int]]:
    return [(begin, stop) for number, _, begin, stop in wire.fields(data, start, end) if number == wanted]
