"""Protocol buffer wire format, read without protocol buffer classes.

Hand-written for two reasons: a trace must be readable on a machine without TensorFlow (which ships the only
published XPlane classes), and a million events through message objects cost seconds and gigabytes, while the
same bytes read column by column with numpy cost tenths of a second.

`fields` walks one message (few, large things: planes, lines, metadata); `varints` and `doubles` read the same
field of very many messages at once (events and their stats).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from flatout.model.errors import Internal

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

PADDING = 32
"""Zero bytes kept behind the data, so that a vectorised read near the end needs no bounds check."""


class WireError(Internal, ValueError):
    """The bytes do not follow the wire format."""


class TruncatedError(WireError):
    """A field runs past the end of the message."""


def varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    """One unsigned varint and the position behind it."""
    result = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise WireError("a number longer than ten bytes")
    raise TruncatedError("the data ends inside a number")


def signed(value: int) -> int:
    """An int64 field as protocol buffers store it: two's complement in 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Every field of the message in data[start:end]: (number, wire type, value or start of content, end).

    Raises TruncatedError when a field does not end inside the message, after the fields before it were given.
    """
    position = start
    while position < end:
        tag, position = varint(data, position, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError("field number 0")
        if kind == VARINT:
            value, position = varint(data, position, end)
            yield number, kind, value, position
        elif kind == LENGTH:
            length, position = varint(data, position, end)
            if position + length > end:
                raise TruncatedError("the data ends inside a field")
            yield number, kind, position, position + length
            position += length
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            if position + width > end:
                raise TruncatedError("the data ends inside a field")
            yield number, kind, position, position + width
            position += width
        else:
            raise WireError(f"wire type {kind}")


def varints(data: Bytes, positions: Positions) -> tuple[NDArray[np.uint64], Positions]:
    """The varint at every position and the positions behind them.

    Most numbers in a trace are shorter than four bytes, so each round looks only at those still running.
    """
    byte = data.take(positions)
    value = (byte & 0x7F).astype(np.uint64)
    after = positions + 1
    running = np.flatnonzero(byte & 0x80)
    shift = 7
    while running.size:
        if shift > 63:
            raise WireError("a number longer than ten bytes")
        byte = data.take(after[running])
        value[running] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[running] += 1
        running = running[(byte & 0x80) != 0]
        shift += 7
    return value, after


def doubles(data: Bytes, positions: Positions) -> NDArray[np.uint64]:
    """The eight bytes at every position as one little-endian word (view it as float64 for its value)."""
    word = np.zeros(positions.shape, np.uint64)
    for index in range(8):
        word |= data.take(positions + index).astype(np.uint64) << np.uint64(8 * index)
    return word


def skip(data: Bytes, kinds: NDArray[np.uint64], positions: Positions) -> Positions:
    """Positions behind fields of no interest, whose tags have been read."""
    after: Positions = positions.copy()
    for kind in np.unique(kinds):
        mine = np.flatnonzero(kinds == kind)
        if kind == VARINT:
            after[mine] = varints(data, positions[mine])[1]
        elif kind == LENGTH:
            length, begin = varints(data, positions[mine])
            after[mine] = begin + length.astype(np.int64)
        elif kind == FIXED64:
            after[mine] += 8
        elif kind == FIXED32:
            after[mine] += 4
        else:
            raise WireError(f"wire type {int(kind)}")
    return after
