"""The contents of a trace: planes, their lines, and the events of a line as numpy columns.

Stats are decoded when they are first used: most never are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.trace import wire
from flatout.trace.columns import (
    BYTES,
    DOUBLE,
    INT64,
    REFERENCE,
    STRING,
    UINT64,
    EventColumns,
    StatIndex,
    StatValues,
    index_stats,
    read_values,
)

MOST_OBJECTS = 1 << 23
"""Names, stats of names, warnings; a line counts as 8 and a plane as 16. An object takes about 200 bytes."""
FARTHEST_PS = 1 << 62
"""Fifty days: a line that begins farther away is damaged, and its picoseconds would not fit their numbers."""

Value = float | int | str | bytes
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Objects = NDArray[np.object_]


@dataclass(frozen=True)
class EventMetadata:
    """What all events of one name share."""

    id: int
    name: str
    display_name: str = ""
    stats_at: tuple[tuple[int, int], ...] = ()
    """Positions of the undecoded stats: an HLO module may be megabytes that are never used."""


class Line:
    """The events of one thread, stream or track, in the order of the file (mostly by start)."""

    def __init__(self, plane: Plane, header: dict[int, Any], events: EventColumns) -> None:
        self.plane = plane
        self.id: int = wire.signed(header.get(1, 0))
        self.name: str = header.get(2, "")
        self.display_name: str = header.get(11, "") or self.name
        self.timestamp_ns: int = wire.signed(header.get(3, 0))
        """Absolute start of the line; the offsets of its events count from here."""
        self._events = events

    def __len__(self) -> int:
        return int(self._events.end.size)

    def __repr__(self) -> str:
        return f"<Line {self.display_name!r}: {len(self)} events>"

    @property
    def name_id(self) -> Integers:
        """Key of each event's name in `plane.event_metadata`."""
        return self._events.metadata_id

    @cached_property
    def start_ps(self) -> Integers:
        """Picoseconds since `trace.origin_ns`."""
        since = (self.timestamp_ns - self.plane.trace.origin_ns) * 1000
        return self._events.offset_ps + min(max(since, -FARTHEST_PS), FARTHEST_PS)

    @property
    def duration_ps(self) -> Integers:
        return self._events.duration_ps

    @property
    def start_ns(self) -> Floats:
        """Nanoseconds since `trace.origin_ns`: an absolute time would not fit a float64 to the picosecond."""
        return self.start_ps / 1000.0

    @property
    def duration_ns(self) -> Floats:
        return self._events.duration_ps / 1000.0

    @property
    def end_ns(self) -> Floats:
        return (self.start_ps + self._events.duration_ps) / 1000.0

    def names(self) -> Objects:
        """The name of every event; select by `name_id` where speed matters."""
        return self.plane.names(self.name_id)

    def where(self, wanted: Callable[[str], bool]) -> Integers:
        """Indices of the events whose name satisfies the predicate, which is called once per name."""
        return np.flatnonzero(np.isin(self.name_id, self.plane.ids_where(wanted))).astype(np.int64)

    @cached_property
    def _stats(self) -> StatIndex:
        try:
            return index_stats(self.plane.trace._array, self._events)
        except wire.WireError as damage:
            self.plane.trace.warnings.append(f"Stats of line {self.display_name!r} are damaged: {damage}.")
            return StatIndex.empty()

    @cached_property
    def stat_names(self) -> tuple[str, ...]:
        """Names of the stats that at least one event of this line has."""
        return tuple(self.plane.stat_name(int(key)) for key in np.unique(self._stats.metadata_id))

    def _select(self, name: str) -> tuple[NDArray[np.int32], StatValues]:
        """Events that have a stat, and its values there."""
        ids = self.plane.stat_ids(name)
        stats = self._stats
        if not ids:
            rows = np.zeros(0, np.int64)
        elif len(ids) == 1:
            rows = np.flatnonzero(stats.metadata_id == ids[0])
        else:
            rows = np.flatnonzero(np.isin(stats.metadata_id, ids))
        return stats.event[rows], read_values(self.plane.trace._array, stats.begin[rows], stats.end[rows])

    def has_stat(self, name: str) -> bool:
        """Whether any event may have this stat. Cheap if the plane does not have the name at all."""
        return bool(self.plane.stat_ids(name)) and name in self.stat_names

    def stat(self, name: str) -> Floats | Objects:
        """One stat as a column: float64 with NaN where missing if all are numbers, else objects with None."""
        events, values = self._select(name)
        if np.isin(values.kind, (DOUBLE, UINT64, INT64)).all():
            column = np.full(len(self), np.nan)
            column[events] = _numbers(values)
            return column
        codes, strings = self._codes(events, values)
        table: Objects = np.array([*strings, None], dtype=object)
        return table[codes]

    def stat_floats(self, name: str) -> Floats:
        """One stat as numbers; strings that spell numbers count, all else is NaN."""
        column = self.stat(name)
        if column.dtype != object:
            return column.astype(np.float64)
        return np.array([_number(value) for value in column], dtype=np.float64)

    def stat_integers(self, name: str, missing: int = -1) -> Integers:
        """One stat as int64 without the rounding of float64: identifiers, addresses, byte counts."""
        events, values = self._select(name)
        column = np.full(len(self), missing, np.int64)
        exact = np.isin(values.kind, (UINT64, INT64))
        column[events[exact]] = values.raw[exact].view(np.int64)
        doubles = values.kind == DOUBLE
        column[events[doubles]] = values.raw[doubles].view(np.float64).astype(np.int64)
        return column

    def stat_strings(self, name: str) -> tuple[Integers, list[str]]:
        """One stat as (codes, values): values[codes[i]] for event i, -1 where missing. Fast to group by."""
        return self._codes(*self._select(name))

    def _codes(self, events: NDArray[np.int32], values: StatValues) -> tuple[Integers, list[str]]:
        codes = np.full(len(self), -1, np.int64)
        known: dict[str, int] = {}
        references = np.flatnonzero(values.kind == REFERENCE)
        targets, inverse = np.unique(values.raw[references], return_inverse=True)
        lookup = [known.setdefault(self.plane.stat_names.get(int(i), ""), len(known)) for i in targets]
        if lookup:
            codes[events[references]] = np.array(lookup, np.int64)[inverse]
        for row in np.flatnonzero(values.kind != REFERENCE):
            text = _text(self._value(values, int(row)))
            codes[events[row]] = known.setdefault(text, len(known))
        return codes, list(known)

    def event_stats(self, index: int) -> dict[str, Value]:
        """All stats of one event."""
        one = slice(index % len(self), index % len(self) + 1)
        columns = self._events
        stats = index_stats(
            self.plane.trace._array,
            EventColumns(*(getattr(columns, name)[one] for name in EventColumns.__dataclass_fields__)),
        )
        values = read_values(self.plane.trace._array, stats.begin, stats.end)
        names = (self.plane.stat_name(int(key)) for key in stats.metadata_id)
        return {name: self._value(values, row) for row, name in enumerate(names)}

    def _value(self, values: StatValues, row: int) -> Value:
        raw = int(values.raw[row])
        return self.plane._decode(int(values.kind[row]), raw, raw + int(values.length[row]))


class Plane:
    """One source of events: the host's CPU, a device, or a set of facts such as `Task Environment`."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.id = 0
        self.name = ""
        self.lines: list[Line] = []
        self.event_metadata: dict[int, EventMetadata] = {}
        self.stat_names: dict[int, str] = {}
        """Names of stats by id. The table also contains the strings that stats refer to."""
        self._stats_at: list[tuple[int, int]] = []
        self._metadata_stats: dict[int, dict[str, Value]] = {}

    def __repr__(self) -> str:
        return f"<Plane {self.name!r}: {len(self.lines)} lines, {self.event_count} events>"

    @property
    def event_count(self) -> int:
        return sum(len(line) for line in self.lines)

    @cached_property
    def event_names(self) -> dict[int, str]:
        return {key: item.name for key, item in self.event_metadata.items()}

    def name_of(self, name_id: int) -> str:
        return self.event_names.get(int(name_id), f"#{name_id}")

    def names(self, name_ids: Integers) -> Objects:
        """Names for many ids; each id is looked up once."""
        unique, inverse = np.unique(name_ids, return_inverse=True)
        table: Objects = np.array([self.name_of(int(i)) for i in unique], dtype=object)
        return table[inverse] if unique.size else np.zeros(0, dtype=object)

    def ids_where(self, wanted: Callable[[str], bool]) -> Integers:
        """Ids of the event names that satisfy a predicate."""
        return np.array([key for key, name in self.event_names.items() if wanted(name)], np.int64)

    def stat_name(self, stat_id: int) -> str:
        return self.stat_names.get(stat_id, f"#{stat_id}")

    def stat_ids(self, name: str) -> list[int]:
        return self._ids_by_stat_name.get(name, [])

    @cached_property
    def _ids_by_stat_name(self) -> dict[str, list[int]]:
        table: dict[str, list[int]] = {}
        for key, name in self.stat_names.items():
            table.setdefault(name, []).append(key)
        return table

    @cached_property
    def stats(self) -> dict[str, Value]:
        """Facts about the plane: device model, memory size, process id, …"""
        return self._stats_of(self._stats_at)

    def metadata_stats(self, name_id: int) -> dict[str, Value]:
        """Stats that all events of one name share (TPU planes keep `tf_op`, `hlo_category`, `flops` here)."""
        key = int(name_id)
        if key not in self._metadata_stats:
            metadata = self.event_metadata.get(key)
            self._metadata_stats[key] = self._stats_of(metadata.stats_at) if metadata else {}
        return self._metadata_stats[key]

    def _stats_of(self, spans: Iterable[tuple[int, int]]) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for begin, end in spans:
            key, kind, value, stop = 0, 0, 0, 0
            try:
                for number, _, content, after in wire.fields(self.trace._view, begin, end):
                    if number == 1:
                        key = wire.signed(content)
                    elif number == DOUBLE:
                        kind, value = number, int.from_bytes(self.trace._view[content:after], "little")
                    else:
                        kind, value, stop = number, content, after
            except wire.WireError:
                continue
            found[self.stat_name(key)] = self._decode(kind, value, stop)
        return found

    def _decode(self, kind: int, raw: int, end: int) -> Value:
        if kind == REFERENCE:
            return self.stat_names.get(raw, "")
        if kind in (STRING, BYTES):
            content = bytes(self.trace._view[raw:end])
            return content.decode("utf-8", "replace") if kind == STRING else content
        if kind == INT64:
            return wire.signed(raw)
        if kind == DOUBLE:
            return float(np.uint64(raw).view(np.float64))
        return raw


class Trace:
    """All planes of one host's file. `warnings` lists what could not be read, and the profiler's own complaints."""

    def __init__(self, path: Path | None, data: NDArray[np.uint8]) -> None:
        self.path = path
        self.planes: list[Plane] = []
        self.hostnames: list[str] = []
        self.warnings: list[str] = []
        self._array = data
        self._view = data.data
        self._objects_left = min(MOST_OBJECTS, max(1 << 16, data.size // 16))
        self._events_left = 1024 + data.size // 5

    def take(self, objects: int = 0, events: int = 0) -> None:
        """Count what is made of the file. Two bytes can name a plane, which takes a kilobyte of memory."""
        self._objects_left -= objects
        self._events_left -= events
        if self._objects_left < 0:
            raise wire.WireError("it names more planes, lines and events than it can hold")
        if self._events_left < 0:
            raise wire.WireError("its events are too short to be events")

    def __repr__(self) -> str:
        return f"<Trace {self.hostname!r}: {len(self.planes)} planes, {self.event_count} events>"

    @property
    def hostname(self) -> str:
        if self.hostnames:
            return self.hostnames[0]
        return self.path.name.split(".xplane.pb")[0] if self.path else ""

    @property
    def event_count(self) -> int:
        return sum(plane.event_count for plane in self.planes)

    @cached_property
    def origin_ns(self) -> int:
        """Absolute time from which all start times count: the beginning of the earliest line."""
        lines = (line for plane in self.planes for line in plane.lines if len(line))
        return min((line.timestamp_ns for line in lines), default=0)

    def plane(self, name: str) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == name), None)

    def planes_like(self, beginning: str) -> list[Plane]:
        return [plane for plane in self.planes if plane.name.startswith(beginning)]


def _numbers(values: StatValues) -> Floats:
    raw, kind = values.raw, values.kind
    numbers = np.where(kind == INT64, raw.view(np.int64).astype(np.float64), raw.astype(np.float64))
    return np.where(kind == DOUBLE, raw.view(np.float64), numbers)


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
