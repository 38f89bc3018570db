"""CSV files: one element per row, one feature per column.

A column has integers, floating point numbers (float32, or doubles with --float64) or text. Numbers with leading zeros
are identifiers and stay text. An empty field in a column of numbers is NaN.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from flatout.data.shards.example import Element
from flatout.data.shards.source import Corrupt, Numbers
from flatout.data.shards.sources import columns, rows
from flatout.model.errors import DataUnusable

SUFFIXES = frozenset((".csv", ".tsv"))
OVERHEAD = 40
"""An upper limit of the bytes that a column needs besides its name and its text."""

_INTEGER = re.compile(r"-?[1-9]\d{0,18}|0")
_WHOLE = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_NOT_A_NUMBER = columns.Column(columns.JSON)
_MISSING = columns.Column(missing=True)
_SMALL, _LARGE = columns.Column(columns.INTEGER), columns.Column(columns.INTEGER, large=True)
_DECIMAL = columns.Column(columns.FLOAT)


@dataclass(frozen=True)
class Csv(rows.Table):
    delimiter: str
    names: tuple[str, ...]
    """Names of the columns."""
    kind: ClassVar[str] = "csv"

    @classmethod
    def open(cls, paths: Sequence[Path], header: bool = True, float64: bool = False, keep_text: bool = False) -> Csv:
        delimiter = _delimiter(paths[0])
        index = rows.index_rows(paths, header, delimiter)
        try:
            names = _names(index, delimiter) if header else _numbered(index.bytes_of(0), delimiter)
        except Corrupt as error:
            raise DataUnusable(f"The first row of {paths[0]} cannot be read: {error}. Repair it.") from None
        _expect_distinct(names, paths[0], keep_text)
        opened = cls(index, columns.Reading((), ()), keep_text, delimiter, names)
        found = columns.merge(_survey_all(opened))
        return dataclasses.replace(opened, reading=columns.reading(found, float64, columns.TEXT))

    def sizes(self) -> Numbers:
        overhead = sum(len(name.encode(errors="surrogateescape")) + OVERHEAD for name in self.names) + OVERHEAD
        return self.index.length * (2 if self.keep_text else 1) + overhead

    def fields(self, data: bytes) -> dict[str, str]:
        parsed = _parsed(data, self.delimiter)
        if len(parsed) != len(self.names):
            raise Corrupt(f"it has {len(parsed)} fields; {len(self.names)} were expected")
        return dict(zip(self.names, parsed, strict=True))

    def read(self, number: int) -> Element:
        data = self.index.bytes_of(number)
        fields = self.fields(data)
        values = {}
        for one in self.reading.features:
            text = fields[one.name]
            values[one.name] = columns.value_of(one, text if one.stored == "bytes" else text.strip() or None)
        return {**values, rows.TEXT: data} if self.keep_text else values


def _delimiter(path: Path) -> str:
    with open(path, "rb") as stream:
        line = stream.readline(1 << 20).decode("latin-1")
    return max(",;\t|", key=line.count)


def _parsed(data: bytes, delimiter: str) -> list[str]:
    text = data.decode("utf-8", "surrogateescape").strip("\r\n")
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise Corrupt(f"it is not CSV: {error}") from None


def _numbered(data: bytes, delimiter: str) -> tuple[str, ...]:
    return tuple(f"column_{number}" for number in range(len(_parsed(data, delimiter))))


def _names(index: rows.RowIndex, delimiter: str) -> tuple[str, ...]:
    """The names of the columns, which must be the same in all files."""
    found: dict[tuple[str, ...], str] = {}
    for file, header in zip(index.files, index.headers, strict=True):
        if header:
            found.setdefault(tuple(_parsed(header.encode("latin-1").removeprefix(codecs.BOM_UTF8), delimiter)), file)
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise DataUnusable(f"{one} and {other} do not have the same columns. Convert them one by one.")
    return next(iter(found))


def _expect_distinct(columns: tuple[str, ...], path: Path, keep_text: bool) -> None:
    if len(set(columns)) != len(columns) or "" in columns:
        raise DataUnusable(
            f"The first row of {path} does not give each column a name of its own: {', '.join(columns)[:200]}. "
            "Rename them, or give --no-header if it is a row of data."
        )
    if keep_text and rows.TEXT in columns:
        raise DataUnusable(f"{path} has a column named {rows.TEXT!r}, which --keep-text needs. Rename it.")


def _survey_all(source: Csv) -> Iterator[tuple[int, columns.Columns]]:
    from flatout.data.shards import workers

    return workers.spread(survey, source)


def survey(part: Csv) -> tuple[int, columns.Columns]:
    """The types of the columns that fit all rows of a part."""
    seen: list[set[columns.Column]] = [set() for _ in part.names]
    count = 0
    for number in range(len(part)):
        try:
            fields = part.fields(part.index.bytes_of(number))
        except Corrupt:
            continue
        count += 1
        for kinds, text in zip(seen, fields.values(), strict=True):
            kinds.add(_type_of(text))
    merged = {name: _merged(kinds) for name, kinds in zip(part.names, seen, strict=True) if count}
    return count, merged


def _merged(kinds: set[columns.Column]) -> columns.Column:
    result = columns.Column()
    for one in sorted(kinds, key=repr):
        result = result.merged(one)
    return result


def _type_of(text: str) -> columns.Column:
    text = text.strip()
    if not text:
        return _MISSING
    if _INTEGER.fullmatch(text):
        size = abs(int(text))
        return _NOT_A_NUMBER if size >= 1 << 63 else _SMALL if size <= columns.EXACT_IN_FLOAT32 else _LARGE
    if _WHOLE.fullmatch(text) and (len(text) > 20 or abs(int(text)) > columns.EXACT_IN_FLOAT32):
        return _NOT_A_NUMBER  # with a plus, or beyond an int64: a telephone number or a key, which a float would round
    return _DECIMAL if _FLOAT.fullmatch(text) else _NOT_A_NUMBER
