"""The file formats that a shard can have. Each module has a SUFFIX, its COMPRESSIONS, a Writer and `read`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from flatout.data.shards import arrayrecord, tfrecord
from flatout.model.errors import InvalidOption

FORMATS: dict[str, ModuleType] = {"tfrecord": tfrecord, "arrayrecord": arrayrecord}


def suffix(format: str, compression: str) -> str:
    """The suffix of the files. Fails on an unknown format, or on one whose package is not installed."""
    if format not in FORMATS:
        raise InvalidOption(f"There is no format {format!r}. The formats are {' and '.join(FORMATS)}.")
    module = FORMATS[format]
    if compression not in module.COMPRESSIONS:
        known = ", ".join(repr(one) for one in module.COMPRESSIONS if one) or "none"
        raise InvalidOption(f"{format} has no compression {compression!r}. Known: {known}.")
    if format == "arrayrecord":
        arrayrecord.expect_package()
    return str(module.SUFFIX) + (".gz" if compression == "gzip" else "")


def read(path: Path, format: str, compression: str) -> Iterator[bytes]:
    records: Iterator[bytes] = FORMATS[format].read(path, compression)
    return records
