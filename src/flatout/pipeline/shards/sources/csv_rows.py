"""CSV files: one element per row, one feature per column.

A column is whole numbers, floating point numbers (float32 unless doubles are asked for) or text. Numbers with leading
zeros are names, and stay text. An empty field is not a number in a column of numbers.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from flatout.errors import FlatoutError
from flatout.pipeline.shards.example import Element
from flatout.pipeline.shards.schema import Feature
from flatout.pipeline.shards.sources import Corrupt, Numbers, rows

SUFFIXES = frozenset((".csv", ".tsv"))
AROUND = 40
"""More bytes than a column needs besides its name and its text."""

_INTEGER = re.compile(r"-?[1-9]\d{0,18}|0")
_FLOAT = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_NO_NUMBER = rows.Column(rows.JSON)
_MISSING = rows.Column(missing=True)
_SMALL, _LARGE, _DECIMAL = rows.Column(rows.INTEGER), rows.Column(rows.INTEGER, large=True), rows.Column(rows.FLOAT)


@dataclass(frozen=True)
class Csv:
    places: rows.Places
    delimiter: str
    columns: tuple[str, ...]
    reading: rows.Reading
    keep_text: bool = False
    kind: ClassVar[str] = "csv"

    @classmethod
    def open(cls, paths: Sequence[Path], header: bool = True, float64: bool = False, keep_text: bool = False) -> Csv:
        delimiter = _delimiter(paths[0])
        places = rows.places(paths, header, delimiter)
        first = places.headers[0] if header else places.bytes_of(0).decode("latin-1")
        first = first.encode("latin-1").decode("utf-8-sig", "surrogateescape")
        fields = next(csv.reader([first], delimiter=delimiter), [])
        columns = tuple(fields) if header else tuple(f"column_{number}" for number in range(len(fields)))
        _expect_distinct(columns, paths[0], keep_text)
        opened = cls(places, delimiter, columns, rows.Reading((), ()), keep_text)
        found = rows.merge(_surveyed(opened))
        return dataclasses.replace(opened, reading=rows.reading(found, float64, rows.TEXT))

    @property
    def features(self) -> tuple[Feature, ...]:
        text = (Feature(rows.TEXT_FEATURE, "bytes", "string"),) if self.keep_text else ()
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
            "files": self.places.files,
            "headers": self.places.headers,
            "rows": [int((self.places.file == number).sum()) for number in range(len(self.places.files))],
            "text": rows.TEXT_FEATURE if self.keep_text else None,
        }

    def __len__(self) -> int:
        return len(self.places.start)

    def sizes(self) -> Numbers:
        around = sum(len(name.encode(errors="surrogateescape")) + AROUND for name in self.columns) + AROUND
        return self.places.length * (2 if self.keep_text else 1) + around

    def fingerprint(self) -> str:
        return self.places.fingerprint() + repr(self.reading.features) + str(self.keep_text)

    def select(self, numbers: Numbers) -> Csv:
        return dataclasses.replace(self, places=self.places.select(numbers))

    def name(self, number: int) -> str:
        return self.places.name(number)

    def fields(self, data: bytes) -> dict[str, str]:
        text = data.decode("utf-8", "surrogateescape")
        try:
            parsed = next(csv.reader([text.strip("\r\n")], delimiter=self.delimiter, strict=True), [])
        except csv.Error as error:
            raise Corrupt(f"it is no CSV: {error}") from None
        if len(parsed) != len(self.columns):
            raise Corrupt(f"it has {len(parsed)} fields where {len(self.columns)} were expected")
        return dict(zip(self.columns, parsed, strict=True))

    def read(self, number: int) -> Element:
        data = self.places.bytes_of(number)
        fields = self.fields(data)
        values = {}
        for one in self.reading.features:
            text = fields[one.name]
            values[one.name] = rows.value_of(one, text if one.stored == "bytes" else text.strip() or None)
        return {**values, rows.TEXT_FEATURE: data} if self.keep_text else values


def _delimiter(path: Path) -> str:
    with open(path, "rb") as stream:
        line = stream.readline(1 << 20).decode("latin-1")
    return max(",;\t|", key=line.count)


def _expect_distinct(columns: tuple[str, ...], path: Path, keep_text: bool) -> None:
    if len(set(columns)) != len(columns) or "" in columns:
        raise FlatoutError(
            f"The first row of {path} does not name its columns one by one: {', '.join(columns)[:200]}. "
            "Give each a name of its own, or say --no-header if it is a row of data."
        )
    if keep_text and rows.TEXT_FEATURE in columns:
        raise FlatoutError(f"{path} has a column {rows.TEXT_FEATURE!r}, which --keep-text needs for itself. Rename it.")


def _surveyed(source: Csv) -> Iterator[tuple[int, rows.Columns]]:
    from flatout.pipeline.shards import workers

    return workers.spread(survey, source)


def survey(part: Csv) -> tuple[int, rows.Columns]:
    """What the rows of a part allow each column to be."""
    seen: list[set[rows.Column]] = [set() for _ in part.columns]
    count = 0
    for number in range(len(part)):
        try:
            fields = part.fields(part.places.bytes_of(number))
        except Corrupt:
            continue
        count += 1
        for kinds, text in zip(seen, fields.values(), strict=True):
            kinds.add(_looks_like(text))
    merged = {name: _merged(kinds) for name, kinds in zip(part.columns, seen, strict=True) if count}
    return count, merged


def _merged(kinds: set[rows.Column]) -> rows.Column:
    result = rows.Column()
    for one in sorted(kinds, key=repr):
        result = result.merged(one)
    return result


def _looks_like(text: str) -> rows.Column:
    text = text.strip()
    if not text:
        return _MISSING
    if _INTEGER.fullmatch(text):
        size = abs(int(text))
        return _NO_NUMBER if size >= 1 << 63 else _SMALL if size <= rows.EXACT_IN_FLOAT32 else _LARGE
    return _DECIMAL if _FLOAT.fullmatch(text) else _NO_NUMBER
