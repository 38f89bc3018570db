"""Text files with one element per row: an index of the rows, and what CSV and JSON sources share.

All rows are read, on all cores, before anything is written: the type of a column has to fit every row.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards.schema import Feature
from flatout.data.shards.source import Corrupt, Numbers
from flatout.data.shards.sources.columns import Reading
from flatout.model.errors import DataUnusable

csv.field_size_limit((1 << 31) - 1)  # its default of 128 kB is too small for data
CHUNK = 1 << 26
TEXT = "text"


Kind = TypeVar("Kind", bound="Table")


@dataclass(frozen=True)
class Table:
    """Rows as elements. `Csv` and `Json` define how one is read."""

    index: RowIndex
    reading: Reading
    keep_text: bool
    """Whether the bytes of the row are stored in addition to its values."""

    @property
    def features(self) -> tuple[Feature, ...]:
        text = (Feature(TEXT, "bytes", "string"),) if self.keep_text else ()
        return (*self.reading.features, *text)

    @property
    def classes(self) -> tuple[str, ...]:
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.reading.notes

    @property
    def layout(self) -> dict[str, Any]:
        return {
            "files": self.index.files,
            "headers": self.index.headers,
            "rows": np.bincount(self.index.file, minlength=len(self.index.files)).tolist(),
            "text": TEXT if self.keep_text else None,
        }

    def __len__(self) -> int:
        return len(self.index.start)

    def fingerprint(self) -> str:
        return self.index.fingerprint() + repr(self.reading.features) + str(self.keep_text)

    def select(self: Kind, numbers: Numbers) -> Kind:
        return replace(self, index=self.index.select(numbers))

    def name(self, number: int) -> str:
        return self.index.name(number)


@dataclass(frozen=True)
class RowIndex:
    """The bytes of each row in its file, with the line end."""

    root: str
    files: tuple[str, ...]
    headers: tuple[str, ...]
    """What precedes the first row of each file, as Latin-1, which preserves every byte."""
    modified: tuple[int, ...]
    file: Numbers
    start: Numbers
    length: Numbers

    def select(self, numbers: Numbers) -> RowIndex:
        return replace(self, file=self.file[numbers], start=self.start[numbers], length=self.length[numbers])

    def bytes_of(self, number: int) -> bytes:
        path = os.path.join(self.root, self.files[int(self.file[number])])
        try:
            data = os.pread(_opened(path).fileno(), int(self.length[number]), int(self.start[number]))
        except OSError as error:
            raise Corrupt(f"it cannot be read: {error.strerror}") from None
        if len(data) != self.length[number]:
            raise Corrupt("it changed during the conversion")
        return data

    def name(self, number: int) -> str:
        return f"{self.files[int(self.file[number])]}, byte {int(self.start[number])}"

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.files, self.modified)).encode(errors="surrogateescape"))
        digest.update(self.start.tobytes() + self.length.tobytes())
        return digest.hexdigest()


@functools.lru_cache(maxsize=64)
def _opened(path: str) -> IO[bytes]:
    return open(path, "rb")


def index_rows(paths: Sequence[Path], header: bool, delimiter: str = "") -> RowIndex:
    """The rows of all files, in the order of their names. `header`: each file has one; a delimiter means CSV."""
    parts: list[tuple[Numbers, Numbers]] = []
    headers: list[str] = []
    for path in paths:
        starts, ends = _whole(path) if path.suffix.lower() == ".json" else _lines(path, delimiter)
        if header and len(starts):
            headers.append(_beginning(path, int(ends[0])))
            starts, ends = starts[1:], ends[1:]
        else:
            headers.append(_beginning(path, int(starts[0])) if len(starts) else "")
        parts.append((starts, ends - starts))
    counts = [len(starts) for starts, _ in parts]
    if not sum(counts):
        raise DataUnusable(
            f"There are no rows in {paths[0]}{' and the other files' if len(paths) > 1 else ''}. Name other files."
        )
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return RowIndex(
        root=root,
        files=tuple(os.path.relpath(path.absolute(), root) for path in paths),
        headers=tuple(headers),
        modified=tuple(path.stat().st_mtime_ns for path in paths),
        file=np.repeat(np.arange(len(paths)), counts),
        start=np.concatenate([starts for starts, _ in parts]),
        length=np.concatenate([lengths for _, lengths in parts]),
    )


def _beginning(path: Path, end: int) -> str:
    """The names of the columns, or empty lines."""
    with open(path, "rb") as stream:
        return stream.read(end).decode("latin-1")


def _whole(path: Path) -> tuple[Numbers, Numbers]:
    return np.zeros(1, np.int64), np.array([path.stat().st_size], np.int64)


def _lines(path: Path, delimiter: str) -> tuple[Numbers, Numbers]:
    size = path.stat().st_size
    bounds: Numbers = np.unique(np.concatenate([np.zeros(1, np.int64), _ends(path, delimiter), np.full(1, size)]))
    starts, ends = bounds[:-1], bounds[1:]
    # An empty line is part of the row before it: it is not an element, but its bytes are kept.
    starts = starts[~_blank(path, starts, ends)]
    return starts, np.append(starts[1:], size) if len(starts) else starts


def _ends(path: Path, delimiter: str) -> Numbers:
    """Where lines end; in CSV with quotes where rows end, because quotes may contain a line end."""
    found: list[Numbers] = [np.zeros(0, np.int64)]
    with open(path, "rb") as stream:
        while block := stream.read(CHUNK):
            if delimiter and b'"' in block:
                return _ends_of_quoted(path, delimiter)
            data = np.frombuffer(block, np.uint8)
            found.append(np.flatnonzero(data == ord("\n")) + stream.tell() - len(block) + 1)
    return np.concatenate(found)


def _ends_of_quoted(path: Path, delimiter: str) -> Numbers:
    """Where Python's CSV reader sees the end of each row: the bytes that it has read when it yields one."""
    read, ends = 0, list[int]()

    def lines() -> Iterator[str]:
        nonlocal read
        with open(path, "rb") as stream:
            for line in stream:
                read += len(line)
                yield line.decode("latin-1")

    try:
        for _ in csv.reader(lines(), delimiter=delimiter):
            ends.append(read)
    except csv.Error as error:
        raise DataUnusable(f"{path} cannot be split into rows near byte {read}: {error}. Repair it there.") from None
    return np.array(ends, np.int64)


def _blank(path: Path, starts: Numbers, ends: Numbers) -> NDArray[np.bool_]:
    blank = np.zeros(len(starts), np.bool_)
    with open(path, "rb") as stream:
        for number in np.flatnonzero(ends - starts <= 2).tolist():
            stream.seek(int(starts[number]))
            blank[number] = not stream.read(int(ends[number] - starts[number])).strip()
    return blank
