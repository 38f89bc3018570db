"""CRC-32C as TFRecord stores it, without TensorFlow, so that a worker starts at once.

The package google-crc32c computes it in hardware and is used where it is installed (`pip install "flatout[shards]"`);
otherwise numpy computes it. A CRC is linear: the contribution of each byte depends only on its value and its distance
from the end. So one table has the contribution of every byte at every distance within a block, a block is a look-up and
one xor over all its bytes, and only the few bytes of the register go from block to block.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial with its bits reversed."""
BLOCK = 1024
SHORT_BYTES = 64
"""For fewer bytes a plain loop is faster than numpy."""


def masked(data: bytes) -> int:
    """The checksum of a record or of its length as the format stores it: rotated and shifted, because the CRC of data
    that contains its own CRC is constant."""
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFF_FFFF


def crc32c(data: bytes) -> int:
    return _implementation()(data)


@functools.cache
def _implementation() -> Callable[[bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        return by_table
    # Without its C extension, that package is slower than numpy.
    native: Callable[[bytes], int] = google_crc32c.value
    return native if google_crc32c.implementation == "c" else by_table


def by_table(data: bytes) -> int:
    register = 0xFFFF_FFFF
    head = len(data) % BLOCK
    if head:
        register = _advance(register, data[:head])
    if len(data) > head:
        blocks = np.frombuffer(data, np.uint8, offset=head).reshape(-1, BLOCK)
        for contribution in np.bitwise_xor.reduce(_contributions(blocks), axis=1).tolist():
            register = _after_zeros(register, BLOCK) ^ contribution
    return register ^ 0xFFFF_FFFF


def _advance(register: int, data: bytes) -> int:
    """The register after these bytes, fewer than a block."""
    if len(data) < SHORT_BYTES:
        first = _by_distance()[1][0]
        for byte in data:
            register = first[(register ^ byte) & 0xFF] ^ (register >> 8)
        return register
    return _after_zeros(register, len(data)) ^ int(np.bitwise_xor.reduce(_contributions(np.frombuffer(data, np.uint8))))


def _contributions(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    table, _, offsets = _by_distance()
    return table.take(offsets[-data.shape[-1] :] + data)


def _after_zeros(register: int, count: int) -> int:
    """The register after `count` zero bytes, at least four: its own bytes contribute like data."""
    rows = _by_distance()[1]
    return (
        rows[count - 1][register & 0xFF]
        ^ rows[count - 2][register >> 8 & 0xFF]
        ^ rows[count - 3][register >> 16 & 0xFF]
        ^ rows[count - 4][register >> 24]
    )


@functools.cache
def _by_distance() -> tuple[NDArray[np.uint32], list[list[int]], NDArray[np.int32]]:
    """The contribution of each byte by its distance from the end: flat, as rows, and the offset of each distance."""
    row: NDArray[Any] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        row = row >> 1 ^ np.where(row & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    rows = [row]
    while len(rows) < BLOCK:
        last = rows[-1]
        rows.append(row[last & 0xFF] ^ last >> 8)
    table = np.stack(rows)
    offsets = np.arange(BLOCK - 1, -1, -1, dtype=np.int32) * 256
    return table.ravel(), table.tolist(), offsets
