"""The file formats that a shard can have. Each module has a SUFFIX, its COMPRESSIONS, a Writer and `read`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from flatout.data.shards import arrayrecord, tfrecord
from flatout.model.errors import InvalidOption

FORMATS: dict[str, ModuleType] = {"tfrecord": tfrecord, "arrayrecord": arrayrecord}


def suffix(format: str, compression: str) -> str:
    """The ending of the files. Raises for a format that is not known or not to be had."""
    if format not in FORMATS:
        raise InvalidOption(f"There is no format {format!r}. It may be {' or '.join(FORMATS)}.")
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
