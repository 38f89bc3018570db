"""Text files with an element per row, CSV or JSON: where each row lies, and what its values are in all rows.

The type of a column is what every row of it allows; all rows are looked at, on all cores, before anything is written.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from flatout.errors import FlatoutError
from flatout.pipeline.shards.example import Value
from flatout.pipeline.shards.schema import Feature
from flatout.pipeline.shards.sources import Corrupt, Numbers

csv.field_size_limit((1 << 31) - 1)  # its own limit of 128 kB is for forms, not for data
CHUNK = 1 << 26
EXACT_IN_FLOAT32 = 1 << 24
TEXT_FEATURE = "text"
INTEGER, FLOAT, BOOL, TEXT, JSON = "integer", "float", "bool", "text", "json"


# ── where the rows lie ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Places:
    """Each row as bytes of a file, its line end included."""

    root: str
    files: tuple[str, ...]
    headers: tuple[str, ...]
    """What stands before the first row of each file, as Latin-1 so that every byte survives."""
    modified: tuple[int, ...]
    file: Numbers
    start: Numbers
    length: Numbers

    def select(self, numbers: Numbers) -> Places:
        return replace(self, file=self.file[numbers], start=self.start[numbers], length=self.length[numbers])

    def bytes_of(self, number: int) -> bytes:
        path = os.path.join(self.root, self.files[int(self.file[number])])
        try:
            data = os.pread(_opened(path).fileno(), int(self.length[number]), int(self.start[number]))
        except OSError as error:
            raise Corrupt(f"it cannot be read: {error.strerror}") from None
        if len(data) != self.length[number]:
            raise Corrupt("it changed while it was converted")
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


def places(paths: Sequence[Path], header: bool, delimiter: str = "") -> Places:
    """Rows of all files, in the order of their names. A header is that of each file; a delimiter makes it CSV."""
    parts: list[tuple[Numbers, Numbers]] = []
    headers: list[str] = []
    for path in paths:
        starts, ends = _whole(path) if path.suffix.lower() == ".json" else _lines(path, delimiter)
        if header and len(starts):
            with open(path, "rb") as stream:
                headers.append(stream.read(int(ends[0])).decode("latin-1"))
            starts, ends = starts[1:], ends[1:]
        else:
            headers.append("")
        parts.append((starts, ends - starts))
    counts = [len(starts) for starts, _ in parts]
    if not sum(counts):
        raise FlatoutError(f"There are no rows in {paths[0]}{' and the files beside it' if len(paths) > 1 else ''}.")
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return Places(
        root=root,
        files=tuple(os.path.relpath(path.absolute(), root) for path in paths),
        headers=tuple(headers),
        modified=tuple(path.stat().st_mtime_ns for path in paths),
        file=np.repeat(np.arange(len(paths)), counts),
        start=np.concatenate([starts for starts, _ in parts]),
        length=np.concatenate([lengths for _, lengths in parts]),
    )


def _whole(path: Path) -> tuple[Numbers, Numbers]:
    return np.zeros(1, np.int64), np.array([path.stat().st_size], np.int64)


def _lines(path: Path, delimiter: str) -> tuple[Numbers, Numbers]:
    size = path.stat().st_size
    bounds: Numbers = np.unique(np.concatenate([np.zeros(1, np.int64), _ends(path, delimiter), np.full(1, size)]))
    starts, ends = bounds[:-1], bounds[1:]
    # An empty line belongs to the row before it: it is no element, and yet its bytes are kept.
    starts = starts[~_blank(path, starts, ends)]
    return starts, np.append(starts[1:], size) if len(starts) else starts


def _ends(path: Path, delimiter: str) -> Numbers:
    """Where lines end; in CSV with quotes, where rows do, as a line end may stand inside quotes."""
    found: list[Numbers] = [np.zeros(0, np.int64)]
    with open(path, "rb") as stream:
        while block := stream.read(CHUNK):
            if delimiter and b'"' in block:
                return _ends_of_quoted(path, delimiter)
            data = np.frombuffer(block, np.uint8)
            found.append(np.flatnonzero(data == ord("\n")) + stream.tell() - len(block) + 1)
    return np.concatenate(found)


def _ends_of_quoted(path: Path, delimiter: str) -> Numbers:
    """Python's own reader decides what a row is; what it has taken when it gives one is where that ends."""
    taken, ends = 0, list[int]()

    def lines() -> Iterator[str]:
        nonlocal taken
        with open(path, "rb") as stream:
            for line in stream:
                taken += len(line)
                yield line.decode("latin-1")

    try:
        for _ in csv.reader(lines(), delimiter=delimiter):
            ends.append(taken)
    except csv.Error as error:
        raise FlatoutError(f"{path} cannot be split into rows near byte {taken}: {error}. Mend it there.") from None
    return np.array(ends, np.int64)


def _blank(path: Path, starts: Numbers, ends: Numbers) -> NDArray[np.bool_]:
    blank = np.zeros(len(starts), np.bool_)
    with open(path, "rb") as stream:
        for number in np.flatnonzero(ends - starts <= 2).tolist():
            stream.seek(int(starts[number]))
            blank[number] = not stream.read(int(ends[number] - starts[number])).strip()
    return blank


# ── what a column holds ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Column:
    """What the rows seen so far allow a column to be."""

    kind: str = ""
    shape: tuple[int | None, ...] = ()
    missing: bool = False
    large: bool = False
    """A whole number that float32 would round."""

    def merged(self, other: Column) -> Column:
        if self == other:
            return self
        missing, large = self.missing or other.missing, self.large or other.large
        if not self.kind or not other.kind:
            known = self if self.kind else other
            return replace(known, missing=missing, large=large)
        kinds = {self.kind, other.kind}
        kind = self.kind if len(kinds) == 1 else FLOAT if kinds == {INTEGER, FLOAT} else JSON
        shape = self.shape
        if shape != other.shape:
            lists = len(shape) == len(other.shape) == 1
            kind, shape = (kind, (None,)) if lists else (JSON, ())
        return Column(kind, () if kind == JSON else shape, missing, large)


Columns = dict[str, Column]


def merge(surveys: Iterable[tuple[int, Columns]]) -> Columns:
    """Of several surveys, each with its number of rows: a column that only some have is missing in the others."""
    total, counts, merged = 0, dict[str, int](), dict[str, Column]()
    for rows, columns in surveys:
        total += rows
        for name, column in columns.items():
            merged[name] = merged[name].merged(column) if name in merged else column
            counts[name] = counts.get(name, 0) + rows
    return {name: replace(c, missing=c.missing or counts[name] < total) for name, c in merged.items()}


@dataclass(frozen=True)
class Reading:
    """How the values of a column become a feature."""

    features: tuple[Feature, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = field(default=())


def reading(columns: Mapping[str, Column], float64: bool, mixed: str) -> Reading:
    """`mixed` is what a column becomes whose rows disagree: text, or JSON text."""
    features, kept, notes = [], [], []
    for name in sorted(columns):
        if not _is_text(name):
            raise FlatoutError(
                f"The name of the column {name!r} is no UTF-8 text. Save the file as UTF-8, or rename it."
            )
        column = _settled(columns[name], mixed)
        if column.kind in (TEXT, JSON) and columns[name].kind not in (TEXT, JSON, ""):
            notes.append(f"column {name!r} is kept as text: {_why_text(columns[name])}")
        features.append(_feature(name, column, float64))
        kept.append(column)
    return Reading(tuple(features), tuple(kept), tuple(notes))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _settled(column: Column, mixed: str) -> Column:
    """A value that is missing is not a number in a column of numbers, no text in one of text, and no list."""
    if not column.kind:
        return Column(TEXT, (), True)
    if column.kind == JSON:
        return replace(column, kind=mixed, shape=())
    if not column.missing or column.kind in (TEXT, FLOAT):
        return replace(column, shape=(None,)) if column.shape and column.missing else column
    if column.shape:
        return replace(column, shape=(None,)) if len(column.shape) == 1 else Column(mixed, (), True)
    if column.kind == INTEGER and not column.large:
        return replace(column, kind=FLOAT)
    return Column(mixed, (), True)


def _why_text(column: Column) -> str:
    return "some of its values are missing, and its numbers are too large for float32" if column.large else "it varies"


def _feature(name: str, column: Column, float64: bool) -> Feature:
    if column.kind in (TEXT, JSON):
        return Feature(name, "bytes", "string", column.shape, "json" if column.kind == JSON else "")
    if column.kind == FLOAT:
        if float64 and not column.shape:
            return Feature(name, "raw", "float64")
        return Feature(name, "float32", "float32", column.shape)
    return Feature(name, "int64", "bool" if column.kind == BOOL else "int64", column.shape)


def value_of(one: Feature, given: Any) -> Value:
    """A value of a row as its feature keeps it; None is a missing one."""
    if one.stored == "raw":
        return np.array(np.nan if given is None else given, "<f8").tobytes()
    if one.shape:
        if one.stored == "bytes":
            return [str(item).encode(errors="surrogateescape") for item in _flat(given)]
        return np.array(_flat(given), np.int64) if one.stored == "int64" else np.array(_flat(given), np.float32)
    if one.stored == "bytes":
        return str("" if given is None else given).encode(errors="surrogateescape")
    if one.stored == "float32":
        return float("nan") if given is None else float(given)
    return int(given)


def _flat(value: Any) -> list[Any]:
    if value is None:
        return []
    return [item for part in value for item in _flat(part)] if isinstance(value, list) else [value]


def size_factor(features: Iterable[Feature]) -> int:
    """How much longer a row can become: `-1,` is three bytes of text and ten as a whole number of a list."""
    return max([1, *(4 if one.stored == "int64" else 2 for one in features if one.shape and one.stored != "bytes")])
