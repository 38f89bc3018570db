"""The ArrayRecord format, for readers with random access, such as Grain. Its own package writes and reads it.

Groups of one record, which Grain's documentation recommends, keep random access fast. Each record is the same
`tf.train.Example` as in a TFRecord file.
"""

from __future__ import annotations

import errno
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flatout.data.shards.tfrecord import Damaged
from flatout.model.errors import ToolMissing

SUFFIX = "arrayrecord"
COMPRESSIONS = ("", "zstd")
OPTIONS = {"": "group_size:1,uncompressed", "zstd": "group_size:1"}
READ_RECORDS = 256


def expect_package() -> None:
    if importlib.util.find_spec("array_record") is None:
        raise ToolMissing(
            "Writing ArrayRecord needs the package array-record: pip install array-record. TFRecord needs no package."
        )


class Writer:
    """Appends records to the file of a stream; the package opens it by its name."""

    def __init__(self, stream: Any, compression: str = "") -> None:
        from array_record.python import array_record_module

        self._path, self._count = Path(stream.name), 0
        self._out = array_record_module.ArrayRecordWriter(stream.name, OPTIONS[compression])

    def write(self, record: bytes) -> None:
        self._out.write(record)
        self._count += 1

    def close(self) -> None:
        self._out.close()
        # The package does not report a full disk, so the records are counted.
        if sum(1 for _ in read(self._path)) != self._count:
            raise OSError(errno.EIO, "the file does not contain what was written; is the disk full?", str(self._path))


def read(path: Path, compression: str = "") -> Iterator[bytes]:
    from array_record.python import array_record_module

    try:
        reader = array_record_module.ArrayRecordReader(str(path))
        for start in range(0, reader.num_records(), READ_RECORDS):
            yield from reader.read(start, min(start + READ_RECORDS, reader.num_records()))
    except (RuntimeError, ValueError, IndexError) as error:
        raise Damaged(f"{path} cannot be read as ArrayRecord: {error}") from None
