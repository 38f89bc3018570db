"""Events and their stats as columns: the vectorised half of the XPlane reader.

All events of a line are read in lock step: round k reads the k-th field of every event that has one. An event
has four or five fields before its stats, so a million events take a handful of numpy rounds. Events are taken
in chunks, which keeps the temporaries in the processor's cache and the peak memory low.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatout.trace.wire import FIXED64, LENGTH, VARINT, Bytes, Positions, WireError, doubles, skip, varints

CHUNK = 1 << 14
MOST_FIELDS = 1024
"""Of one event, stats included; each is a round over all events of the chunk. Real events have up to 50."""

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
class StatIndex:
    """The position of every stat of a line's events: event index, metadata id of the stat, bytes of the value.

    A device event has a dozen stats of which two or three are ever used: values are decoded on demand.
    """

    event: NDArray[np.int32]
    metadata_id: NDArray[np.int64]
    begin: Positions
    end: Positions

    @classmethod
    def empty(cls) -> StatIndex:
        nothing = np.zeros(0, np.int64)
        return cls(nothing.astype(np.int32), nothing, nothing, nothing)


@dataclass(frozen=True)
class StatValues:
    """Decoded values: kind, and the number itself (bits of a double, target of a reference) or a position.

    For strings and bytes `raw` is the position of the first byte and `length` counts them.
    """

    kind: NDArray[np.uint8]
    raw: NDArray[np.uint64]
    length: NDArray[np.int64]


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
        for number_of_field in itertools.count():
            alive = position < ends[active]
            if not alive.all():
                active, position = active[alive], position[alive]
            if not active.size:
                break
            if number_of_field == MOST_FIELDS:
                raise WireError(f"an event has more than {MOST_FIELDS} fields")
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


def index_stats(data: Bytes, events: EventColumns) -> StatIndex:
    """Find the stats of all events of a line; round k finds the k-th stat of every event that has one."""
    count = events.end.size
    parts = [_index_chunk(data, events, low, min(low + CHUNK, count)) for low in range(0, count, CHUNK)]
    parts = [part for part in parts if part.event.size]
    if not parts:
        return StatIndex.empty()
    return StatIndex(
        np.concatenate([part.event for part in parts]),
        np.concatenate([part.metadata_id for part in parts]),
        np.concatenate([part.begin for part in parts]),
        np.concatenate([part.end for part in parts]),
    )


def _index_chunk(data: Bytes, events: EventColumns, low: int, high: int) -> StatIndex:
    owner = np.arange(low, high)
    end = events.end[low:high]
    position = events.stats_begin[low:high]
    owners: list[Positions] = []
    begins: list[Positions] = []
    ends: list[Positions] = []
    for number_of_field in itertools.count():
        alive = position < end
        if not alive.all():
            owner, position, end = owner[alive], position[alive], end[alive]
        if not owner.size:
            break
        if number_of_field == MOST_FIELDS:
            raise WireError(f"an event has more than {MOST_FIELDS} fields")
        tag, content = varints(data, position)
        is_stat = tag == (4 << 3 | LENGTH)
        if is_stat.all():
            length, begin = varints(data, content)
            position = begin + length.view(np.int64)
            owners.append(owner)
            begins.append(begin)
            ends.append(position)
        else:  # num_occurrences, or a field of a later version of the format
            position = skip(data, tag & np.uint64(7), content)
            owners.append(owner[is_stat])
            begins.append(varints(data, content[is_stat])[1])
            ends.append(position[is_stat])
        _check(content, position, end)
    if not owners:
        return StatIndex.empty()
    begin = np.concatenate(begins)
    first, content = varints(data, begin)
    named = first == (1 << 3 | VARINT)
    value, after = varints(data, content)
    # An id of 0 is not written at all: the value follows at once.
    metadata_id = np.where(named, value.view(np.int64), 0)
    return StatIndex(
        np.concatenate(owners).astype(np.int32),
        metadata_id,
        np.where(named, after, begin),
        np.concatenate(ends),
    )


def read_values(data: Bytes, begin: Positions, end: Positions) -> StatValues:
    """Decode the values of many stats at once."""
    kind = np.zeros(begin.size, np.uint8)
    raw = np.zeros(begin.size, np.uint64)
    length = np.zeros(begin.size, np.int64)
    for low in range(0, begin.size, CHUNK):
        part = slice(low, low + CHUNK)
        _read_values(data, begin[part], end[part], StatValues(kind[part], raw[part], length[part]))
    return StatValues(kind, raw, length)


def _read_values(data: Bytes, begin: Positions, end: Positions, into: StatValues) -> None:
    kind, raw, length = into.kind, into.raw, into.length
    tag, content = varints(data, begin)
    tag[begin >= end] = 0  # a stat without a value
    for one in np.unique(tag):
        mine = np.flatnonzero(tag == one)
        number, wire = int(one) >> 3, int(one) & 7
        if wire == VARINT and number in (UINT64, INT64, REFERENCE):
            raw[mine] = varints(data, content[mine])[0]
        elif wire == FIXED64 and number == DOUBLE:
            raw[mine] = doubles(data, content[mine])
        elif wire == LENGTH and number in (STRING, BYTES):
            size, start = varints(data, content[mine])
            raw[mine] = start.view(np.uint64)
            length[mine] = np.minimum(size.view(np.int64), end[mine] - start)
        else:
            continue
        kind[mine] = number
