"""JSON: one element per line (`.jsonl`, `.ndjson`) or per file (`.json`), one feature per key.

Nested objects become `outer/inner`. Lists of numbers or of text have a fixed or a varying length. What does not fit
these types (a list of objects, a key with numbers in some rows and text in others) is stored as JSON text.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from flatout.data.shards.example import Element, Value
from flatout.data.shards.source import Corrupt, Numbers
from flatout.data.shards.sources import columns, rows
from flatout.model import json_text
from flatout.model.errors import DataUnusable

SUFFIXES = frozenset((".jsonl", ".ndjson", ".json"))
OVERHEAD = 48
_ABSENT = object()


@dataclass(frozen=True)
class Json(rows.Table):
    kind: ClassVar[str] = "json"

    @classmethod
    def open(cls, paths: Sequence[Path], float64: bool = False, keep_text: bool = False) -> Json:
        from flatout.data.shards import workers

        opened = cls(rows.index_rows(paths, header=False), columns.Reading((), ()), keep_text)
        found = columns.merge(workers.spread(survey, opened))
        if not found:
            raise DataUnusable(f"No row of {paths[0]} is a JSON object; one object per line was expected.")
        if keep_text and rows.TEXT in found:
            raise DataUnusable(f"The rows have a key named {rows.TEXT!r}, which --keep-text needs. Rename it.")
        return dataclasses.replace(opened, reading=columns.reading(found, float64, columns.JSON))

    def sizes(self) -> Numbers:
        overhead = sum(len(one.name.encode(errors="surrogatepass")) + OVERHEAD for one in self.features) + OVERHEAD
        return self.index.length * (columns.size_factor(self.reading.features) + self.keep_text) + overhead

    def read(self, number: int) -> Element:
        data = self.index.bytes_of(number)
        flat = flattened(parsed(data))
        try:
            values = self._values(flat)
        except UnicodeEncodeError:
            raise Corrupt("it contains half of a surrogate pair, such as `\\ud83d`") from None
        return {**values, rows.TEXT: data} if self.keep_text else values

    def _values(self, flat: Mapping[str, Any]) -> dict[str, Value]:
        values = {}
        for one in self.reading.features:
            value = flat.get(one.name, _ABSENT)
            if one.encoding == "json":
                text = "" if value is _ABSENT else json.dumps(value, ensure_ascii=False, sort_keys=True)
                values[one.name] = columns.value_of(one, text)
            else:
                values[one.name] = columns.value_of(one, None if value is _ABSENT else value)
        return values


def parsed(data: bytes) -> Mapping[str, Any]:
    try:
        row = json_text.parse(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"it is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise Corrupt(f"it is {type(row).__name__}; an object was expected")
    return row


def flattened(row: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        inner = flattened(value, f"{above}{key}/") if isinstance(value, dict) and value else {above + key: value}
        if twice := flat.keys() & inner.keys():
            raise Corrupt(f"two of its values have the name {min(twice)!r}")
        flat |= inner
    return flat


def survey(part: Json) -> tuple[int, columns.Columns]:
    return _total(_seen(part))


def _seen(part: Json) -> Iterator[dict[str, columns.Column]]:
    for number in range(len(part)):
        try:
            flat = flattened(parsed(part.index.bytes_of(number)))
        except Corrupt:
            continue
        yield {name: type_of(value) for name, value in flat.items()}


def _total(seen: Iterator[dict[str, columns.Column]]) -> tuple[int, columns.Columns]:
    count = 0
    counts: dict[str, int] = {}
    merged: columns.Columns = {}
    for row in seen:
        count += 1
        for name, column in row.items():
            merged[name] = merged[name].merged(column) if name in merged else column
            counts[name] = counts.get(name, 0) + 1
    for name, column in merged.items():
        merged[name] = dataclasses.replace(column, missing=column.missing or counts[name] < count)
    return count, merged


def type_of(value: Any) -> columns.Column:
    if value is None:
        return columns.Column(missing=True)
    if isinstance(value, bool):
        return columns.Column(columns.BOOL)
    if isinstance(value, int):
        small = abs(value) <= columns.EXACT_IN_FLOAT32
        return (
            columns.Column(columns.INTEGER, large=not small)
            if -(1 << 63) <= value < 1 << 63
            else columns.Column(columns.JSON)
        )
    if isinstance(value, float):
        return columns.Column(columns.FLOAT)
    if isinstance(value, str):
        return columns.Column(columns.TEXT)
    if isinstance(value, list):
        return _list(value)
    return columns.Column(columns.JSON)


def _list(value: list[Any]) -> columns.Column:
    if not value:
        return columns.Column(shape=(0,), missing=True)
    items = {type_of(item) for item in value}
    result = columns.Column()
    for item in sorted(items, key=repr):
        result = result.merged(item)
    if result.kind == columns.JSON or result.missing or None in result.shape:
        return columns.Column(columns.JSON)
    return dataclasses.replace(result, shape=(len(value), *result.shape))
