"""The TFRecord format: per record its length, the length's checksum, the bytes, and their checksum.

    uint64 length · uint32 checksum of the length · the record · uint32 checksum of the record

Implemented here because TensorFlow's writer would need the import of TensorFlow, which takes longer than many
conversions. A gzipped file is written without time and name in its header: the same records give the same bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from flatout.data.shards.checksum import masked
from flatout.model.errors import Internal

SUFFIX = "tfrecord"
COMPRESSIONS = ("", "gzip")
FRAME = 16
"""Bytes around each record."""
GZIP = 31
"""zlib's window bits for a gzip file with the largest window; the header has no time and no name."""
MAX_LENGTH = 1 << 31
"""A larger length means a damaged file, not a record to allocate memory for: an Example ends there."""


class Damaged(Internal):
    """A file that differs from what was written. The message says what is wrong and where."""


class Writer:
    """Appends records to a binary stream, which the caller closes."""

    def __init__(self, stream: IO[bytes], compression: str = "") -> None:
        self._stream = stream
        self._compressor = zlib.compressobj(level=6, wbits=GZIP) if compression else None

    def write(self, record: bytes) -> None:
        length = struct.pack("<Q", len(record))
        for part in (length + struct.pack("<I", masked(length)), record, struct.pack("<I", masked(record))):
            self._stream.write(self._compressor.compress(part) if self._compressor else part)

    def close(self) -> None:
        """End the compression. The stream stays open."""
        if self._compressor is not None:
            self._stream.write(self._compressor.flush())


def read(path: Path, compression: str = "") -> Iterator[bytes]:
    """Every record of a file. Raises Damaged where a checksum does not match or the file is truncated."""
    with contextlib.ExitStack() as stack:
        stream: IO[bytes] = stack.enter_context(open(path, "rb", buffering=1 << 20))
        longest = MAX_LENGTH if compression else min(MAX_LENGTH, os.fstat(stream.fileno()).st_size)
        if compression:
            stream = stack.enter_context(gzip.open(stream, "rb"))  # type: ignore[arg-type]
        number = 0
        while (record := _next(stream, path, number, longest)) is not None:
            yield record
            number += 1


def _next(stream: IO[bytes], path: Path, number: int, longest: int) -> bytes | None:
    try:
        header = stream.read(12)
        if not header:
            return None
        if len(header) < 12:
            raise Damaged(f"{path} ends inside the header of record {number}.")
        length, checksum = struct.unpack("<QI", header)
        if checksum != masked(header[:8]) or length > longest:
            raise Damaged(f"{path}: the length of record {number} does not match its checksum.")
        record, tail = stream.read(length), stream.read(4)
    except (EOFError, zlib.error, gzip.BadGzipFile, MemoryError) as error:
        raise Damaged(f"{path}: the compressed data is truncated or damaged at record {number} ({error}).") from None
    if len(record) < length or len(tail) < 4:
        raise Damaged(f"{path} ends inside record {number}.")
    if struct.unpack("<I", tail)[0] != masked(record):
        raise Damaged(f"{path}: record {number} does not match its checksum.")
    return record
