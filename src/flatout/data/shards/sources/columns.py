"""The types of a table's columns, such that every row fits, and the values as a feature stores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flatout.data.shards.example import Value
from flatout.data.shards.schema import Feature
from flatout.data.shards.source import Corrupt
from flatout.model.errors import DataUnusable

EXACT_IN_FLOAT32 = 1 << 24
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
INTEGER, FLOAT, BOOL, TEXT, JSON = "integer", "float", "bool", "text", "json"


@dataclass(frozen=True)
class Column:
    """The type of a column that fits all rows seen so far."""

    kind: str = ""
    """Empty: no row has a value; with a shape, at least one has an empty list."""
    shape: tuple[int | None, ...] = ()
    missing: bool = False
    large: bool = False
    """Whether it contains an integer that float32 would round."""

    def merged(self, other: Column) -> Column:
        if self == other:
            return self
        missing, large = self.missing or other.missing, self.large or other.large
        if not self.kind or not other.kind:
            known, rest = (self, other) if self.kind or (self.shape and not other.kind) else (other, self)
            if known.kind and rest.shape and not known.shape:
                return Column(JSON, (), missing, large)  # an empty list among single values
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
    """Merge surveys, each with its number of rows. A column that only some have is missing in the others."""
    total, counts, merged = 0, dict[str, int](), dict[str, Column]()
    for rows, columns in surveys:
        total += rows
        for name, column in columns.items():
            merged[name] = merged[name].merged(column) if name in merged else column
            counts[name] = counts.get(name, 0) + rows
    return {name: replace(c, missing=c.missing or counts[name] < total) for name, c in merged.items()}


@dataclass(frozen=True)
class Reading:
    """How the values of columns become features."""

    features: tuple[Feature, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = field(default=())


def reading(columns: Mapping[str, Column], float64: bool, mixed: str) -> Reading:
    """`mixed`: the type of a column whose rows disagree, text or JSON text."""
    features, kept, notes = [], [], []
    for name in sorted(columns):
        if not _is_text(name):
            raise DataUnusable(
                f"The name of the column {name!r} is not UTF-8. Save the file as UTF-8, or rename the column."
            )
        column = _without_missing(columns[name], mixed)
        if column.kind in (TEXT, JSON) and columns[name].kind not in (TEXT, JSON, ""):
            notes.append(f"column {name!r} is stored as text: {_why_text(columns[name])}")
        features.append(_feature(name, column, float64))
        kept.append(column)
    return Reading(tuple(features), tuple(kept), tuple(notes))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_missing(column: Column, mixed: str) -> Column:
    """The type that can hold missing values: NaN among numbers, empty text, an empty list."""
    if not column.kind:
        return Column(mixed if column.shape else TEXT, (), True)
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
    return (
        "some of its values are missing, and its numbers are too large for float32"
        if column.large
        else "its types vary"
    )


def _feature(name: str, column: Column, float64: bool) -> Feature:
    if column.kind in (TEXT, JSON):
        return Feature(name, "bytes", "string", column.shape, "json" if column.kind == JSON else "")
    if column.kind == FLOAT:
        if float64 and not column.shape:
            return Feature(name, "raw", "float64")
        return Feature(name, "float32", "float32", column.shape)
    return Feature(name, "int64", "bool" if column.kind == BOOL else "int64", column.shape)


def value_of(one: Feature, given: Any) -> Value:
    """A value of a row as its feature stores it; None is a missing value."""
    if one.stored == "raw":
        return np.array(np.nan if given is None else given, "<f8").tobytes()
    if one.shape:
        if one.stored == "bytes":
            return [str(item).encode(errors="surrogateescape") for item in _flat(given)]
        if one.stored == "int64":
            return np.array(_flat(given), np.int64)
        return np.array([_fitting(one, number) for number in _flat(given)], np.float32)
    if one.stored == "bytes":
        return str("" if given is None else given).encode(errors="surrogateescape")
    if one.stored == "float32":
        return float("nan") if given is None else _fitting(one, given)
    return int(given)


def _fitting(one: Feature, given: Any) -> float:
    """A number that float32 rounds at most. A larger one would become infinite."""
    number = float(given)
    if abs(number) > LARGEST_FLOAT32 and "inf" not in str(given).lower():
        kept = "" if one.shape else "; --float64 keeps it"
        raise Corrupt(f"{str(given)[:40]} in {one.name!r} is larger than any number of the type float32{kept}")
    return number


def _flat(value: Any) -> list[Any]:
    if value is None:
        return []
    return [item for part in value for item in _flat(part)] if isinstance(value, list) else [value]


def size_factor(features: Iterable[Feature]) -> int:
    """How much longer than its text a row can become: `-1,` is three bytes of text and ten as an int64 in a list."""
    return max([1, *(4 if one.stored == "int64" else 2 for one in features if one.shape and one.stored != "bytes")])
