"""Events and their stats as columns: the vectorised half of the XPlane reader.

All events of a line are read in lock step: round k reads the k-th field of every event that has one. An event
has four or five fields before its stats, so a million events take a handful of numpy rounds. Events are taken
in chunks, which keeps the temporaries in the processor's cache and the peak memory low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatout.trace.wire import LENGTH, VARINT, Bytes, Positions, WireError, doubles, skip, varints

CHUNK = 1 << 16

DOUBLE, UINT64, INT64, STRING, BYTES, REFERENCE = 2, 3, 4, 5, 6, 7
"""Field numbers of XStat's value, used here as the kind of a stat."""


@dataclass(frozen=True)
class EventColumns:
    """What every event has. `stats_begin` and `end` delimit the undecoded stats of each event."""

    metadata_id: NDArray[np.int64]
    offset_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    stats_begin: Positions
    end: Positions


@dataclass(frozen=True)
class StatColumns:
    """All stats of a line's events, flat: event index, stat's metadata id, kind of value, value or place.

    `raw` is the number itself (the bits of a double, the target of a reference), or for strings the position
    of the first byte; `length` is the length of strings and bytes.
    """

    event: NDArray[np.int32]
    metadata_id: NDArray[np.int64]
    kind: NDArray[np.uint8]
    raw: NDArray[np.uint64]
    length: NDArray[np.int32]


def read_events(data: Bytes, begins: Positions, ends: Positions) -> EventColumns:
    """Decode the events at data[begins[i]:ends[i]].

    The stats (field 4) come last in an event, as every writer serialises by field number; reading of an event
    stops at its first stat. Only `num_occurrences` (5) may follow: aggregated events have it and no time.
    """
    count = begins.size
    metadata_id = np.zeros(count, np.int64)
    offset_ps = np.zeros(count, np.int64)
    duration_ps = np.zeros(count, np.int64)
    stats_begin = ends.copy()
    targets = {1: metadata_id, 2: offset_ps, 3: duration_ps}
    for low in range(0, count, CHUNK):
        active = np.arange(low, min(low + CHUNK, count))
        position = begins[active]
        while True:
            alive = position < ends[active]
            if not alive.all():
                active, position = active[alive], position[alive]
            if not active.size:
                break
            tag, content = varints(data, position)
            at_stats = tag == (4 << 3 | LENGTH)
            if at_stats.any():
                stats_begin[active[at_stats]] = position[at_stats]
                rest = ~at_stats
                active, tag, content = active[rest], tag[rest], content[rest]
            after = content.copy()
            known = np.zeros(active.size, bool)
            for number, target in targets.items():
                mine = np.flatnonzero(tag == (number << 3 | VARINT))
                if mine.size:
                    value, after[mine] = varints(data, content[mine])
                    target[active[mine]] = value.view(np.int64)
                    known[mine] = True
            other = np.flatnonzero(~known)
            if other.size:
                after[other] = skip(data, tag[other] & np.uint64(7), content[other])
            _check(content, after, ends[active])
            position = after
    return EventColumns(metadata_id, offset_ps, duration_ps, stats_begin, ends)


def _check(content: Positions, after: Positions, end: Positions) -> None:
    """WireError lengths could lead out of the data, or back (as a negative number) and round for ever."""
    if ((after > end) | (after < content)).any():
        raise WireError("a field runs past the end of its message")


def read_stats(data: Bytes, events: EventColumns) -> StatColumns:
    """Decode the stats of all events of a line."""
    parts = [
        _read_chunk(data, events, low, min(low + CHUNK, events.end.size))
        for low in range(0, events.end.size, CHUNK)
    ]
    if not parts:
        parts = [_decode(data, *(np.zeros(0, np.int64) for _ in range(3)))]
    return StatColumns(
        np.concatenate([part.event for part in parts]),
        np.concatenate([part.metadata_id for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.raw for part in parts]),
        np.concatenate([part.length for part in parts]),
    )


def _read_chunk(data: Bytes, events: EventColumns, low: int, high: int) -> StatColumns:
    ends = events.end
    position = events.stats_begin[low:high]
    active = np.arange(low, high)
    owners: list[Positions] = []
    begins: list[Positions] = []
    stops: list[Positions] = []
    while True:
        alive = position < ends[active]
        if not alive.all():
            active, position = active[alive], position[alive]
        if not active.size:
            break
        tag, content = varints(data, position)
        is_stat = tag == (4 << 3 | LENGTH)
        if is_stat.all():
            length, begin = varints(data, content)
            position = begin + length.astype(np.int64)
            owners.append(active)
            begins.append(begin)
            stops.append(position)
        else:
            mine, other = np.flatnonzero(is_stat), np.flatnonzero(~is_stat)
            position = content.copy()
            length, begin = varints(data, content[mine])
            position[mine] = begin + length.astype(np.int64)
            position[other] = skip(data, tag[other] & np.uint64(7), content[other])
            owners.append(active[mine])
            begins.append(begin)
            stops.append(position[mine])
        _check(content, position, ends[active])
    if not owners:
        empty = np.zeros(0, np.int64)
        return _decode(data, empty, empty, empty)
    return _decode(data, np.concatenate(owners), np.concatenate(begins), np.concatenate(stops))


def _decode(data: Bytes, owner: Positions, begin: Positions, stop: Positions) -> StatColumns:
    """The bodies of many XStat messages at once."""
    count = owner.size
    metadata_id = np.zeros(count, np.int64)
    kind = np.zeros(count, np.uint8)
    raw = np.zeros(count, np.uint64)
    length = np.zeros(count, np.int32)
    active = np.arange(count)
    position = begin
    while True:
        alive = position < stop[active]
        if not alive.all():
            active, position = active[alive], position[alive]
        if not active.size:
            break
        tag, content = varints(data, position)
        after = content.copy()
        for one in np.unique(tag):
            mine = np.flatnonzero(tag == one)
            number, wire = int(one) >> 3, int(one) & 7
            if wire == VARINT and number in (1, UINT64, INT64, REFERENCE):
                value, after[mine] = varints(data, content[mine])
                if number == 1:
                    metadata_id[active[mine]] = value.view(np.int64)
                    continue
                raw[active[mine]] = value
            elif number == DOUBLE and wire == 1:
                raw[active[mine]] = doubles(data, content[mine])
                after[mine] += 8
            elif number in (STRING, BYTES) and wire == LENGTH:
                size, start = varints(data, content[mine])
                raw[active[mine]] = start.astype(np.uint64)
                length[active[mine]] = size.astype(np.int32)
                after[mine] = start + size.astype(np.int64)
            else:
                after[mine] = skip(data, tag[mine] & np.uint64(7), content[mine])
                continue
            kind[active[mine]] = number
        _check(content, after, stop[active])
        position = after
    return StatColumns(owner.astype(np.int32), metadata_id, kind, raw, length)
