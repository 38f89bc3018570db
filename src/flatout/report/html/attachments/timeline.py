"""The events of a trace as columns for the page: the lanes, and the start, duration, name and depth of each event.

Columns of fixed width, compressed together, take a tenth of the size of the same events as JSON, and the browser draws
them without making an object per event.
"""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.report.formatting import clean
from flatout.trace.model import Line, Trace
from flatout.trace.steps import find as find_steps

MOST_EVENTS = 200_000
"""Of more events the shortest are dropped: a larger page opens slowly."""
DEEPEST = 30
DETAILS = ("tf_op", "hlo_op", "name", "long_name")
"""Stats that name what an event belongs to. The first one that a line has is shown."""

_POOL = re.compile(r"(.+?)/-?\d{9,}")

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Timeline:
    head: dict[str, Any]
    """Lanes, names, unit and steps, for the page's script."""
    columns: str
    """start, duration, name, detail (uint32 each), depth (uint8): all events, lane by lane; gzip, base64."""
    count: int
    total: int
    """Events in the trace, those left out included."""
    longest: tuple[tuple[str, int, float, float], ...]
    """Name, count, total and greatest duration in ms of what takes most time, for the table."""


@dataclass
class _Lane:
    title: str
    group: str
    rank: int
    start: Integers
    duration: Integers
    name: Integers
    detail: Integers
    nested: bool = True


class _Texts:
    """Distinct texts, numbered in the order of their first use."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        self.number: dict[str, int] = {text: at for at, text in enumerate(first)}

    def of(self, texts: Iterable[str], limit: int) -> Integers:
        numbers = [self.number.setdefault(clean(text, limit), len(self.number)) for text in texts]
        return np.array(numbers, np.int64)


def read_timeline(traces: Iterable[tuple[Trace, int]]) -> Timeline | None:
    names, details = _Texts(), _Texts([""])
    lanes: list[_Lane] = []
    steps: list[int] = []
    for trace, shift in traces:
        lanes += _lanes(trace, shift, names, details)
        if not steps and (found := find_steps(trace)):
            steps = [(int(at) + shift) // 1000 for at in found.starts_ps[:5000]]
    if not lanes:
        return None
    total = sum(lane.start.size for lane in lanes)
    _thin(lanes, total)
    lanes = sorted((lane for lane in lanes if lane.start.size), key=lambda lane: (lane.rank, -lane.start.size))
    return _pack(lanes, steps, list(names.number), list(details.number), total)


def _lanes(trace: Trace, shift: int, names: _Texts, details: _Texts) -> Iterator[_Lane]:
    taken: dict[str, int] = {}
    for plane in trace.planes:
        device = plane.name.startswith("/device:")
        group = f"{trace.hostname} {plane.name}".strip()
        for line in plane.lines:
            if not len(line):
                continue
            ids, inverse = np.unique(line.name_id, return_inverse=True)
            table = names.of((plane.name_of(int(key)) for key in ids), 200)
            yield _Lane(
                _title(line, taken), clean(group, 80), 0 if device else 1 if line.has_stat("step_num") else 2,
                line.start_ps + shift, line.duration_ps.copy(), table[inverse], _details(line, details),
                nested=not line.name.startswith("Stream"),
            )  # fmt: skip


def _title(line: Line, taken: dict[str, int]) -> str:
    """The name of a thread. The long number that TensorFlow appends to threads of a pool becomes a short one."""
    name = clean(line.display_name or f"thread {line.id}", 80)
    pool = _POOL.fullmatch(name)
    if pool is None:
        return name
    taken[pool[1]] = taken.get(pool[1], 0) + 1
    return f"{pool[1]} {taken[pool[1]]}"


def _details(line: Line, texts: _Texts) -> Integers:
    for stat in DETAILS:
        if line.has_stat(stat):
            codes, values = line.stat_strings(stat)
            return np.append(texts.of(values, 240), 0)[codes]
    return np.zeros(len(line), np.int64)


def _thin(lanes: list[_Lane], total: int) -> None:
    if total <= MOST_EVENTS:
        return
    durations = np.concatenate([lane.duration for lane in lanes])
    least = int(np.partition(durations, total - MOST_EVENTS)[total - MOST_EVENTS])
    spare = MOST_EVENTS - int((durations > least).sum())
    for lane in lanes:
        equal = np.flatnonzero(lane.duration == least)[: max(0, spare)]
        spare -= equal.size
        kept = np.sort(np.concatenate((np.flatnonzero(lane.duration > least), equal)))
        lane.start, lane.duration, lane.name, lane.detail = (
            column[kept] for column in (lane.start, lane.duration, lane.name, lane.detail)
        )


def _pack(lanes: list[_Lane], steps: list[int], names: list[str], details: list[str], total: int) -> Timeline:
    for lane in lanes:
        order = np.lexsort((-lane.duration, lane.start))
        lane.start, lane.duration, lane.name, lane.detail = (
            column[order] for column in (lane.start, lane.duration, lane.name, lane.detail)
        )
    origin = min(int(lane.start[0]) for lane in lanes)
    end = max(int((lane.start + lane.duration).max()) for lane in lanes)
    unit = max(1000, -(-(end - origin) // (2**32 - 2)))  # picoseconds; a nanosecond unless the window is long
    column = {
        key: np.concatenate([getattr(lane, key) for lane in lanes]) for key in ("start", "duration", "name", "detail")
    }
    depths = [(_depths if lane.nested else _rows)(lane.start, lane.start + lane.duration) for lane in lanes]
    packed = b"".join(
        part.astype("<u4").tobytes()
        for part in ((column["start"] - origin) // unit, column["duration"] // unit, column["name"], column["detail"])
    ) + np.concatenate(depths).astype(np.uint8).tobytes()  # fmt: skip
    head: dict[str, Any] = {
        "count": int(column["start"].size),
        "unit_ns": unit / 1000,
        "span": int((end - origin) // unit) + 1,
        "names": names,
        "details": details,
        "steps": [(at * 1000 - origin) // unit for at in steps if origin <= at * 1000 <= end],
        "lanes": [
            {"title": lane.title, "group": lane.group, "count": int(lane.start.size), "rows": int(depth.max()) + 1}
            for lane, depth in zip(lanes, depths, strict=True)
        ],
    }
    longest = _longest(column["name"], column["duration"], names)
    return Timeline(head, b64encode(gzip.compress(packed, 6, mtime=0)).decode("ascii"), head["count"], total, longest)


def _depths(start: Integers, end: Integers) -> Integers:
    """The row of each event inside its lane: below all events that are still running when it begins."""
    depths = np.zeros(start.size, np.int64)
    going: list[int] = []
    for at, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while going and going[-1] <= begin:
            going.pop()
        depths[at] = min(len(going), DEEPEST)
        if len(going) < DEEPEST:
            going.append(finish)
    return depths


def _rows(start: Integers, end: Integers) -> Integers:
    """As `_depths`, for streams: overlapping kernels do not contain each other, so any free row is used."""
    rows = np.zeros(start.size, np.int64)
    until: list[int] = []
    for at, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        free = next((row for row, busy in enumerate(until) if busy <= begin), len(until))
        if free == len(until) and free <= DEEPEST:
            until.append(finish)
        rows[at] = min(free, DEEPEST)
        until[rows[at]] = finish
    return rows


def _longest(name: Integers, duration: Integers, names: list[str]) -> tuple[tuple[str, int, float, float], ...]:
    total = np.bincount(name, weights=duration, minlength=len(names)) / 1e9
    count = np.bincount(name, minlength=len(names))
    greatest = np.zeros(len(names), np.int64)
    np.maximum.at(greatest, name, duration)
    order = np.argsort(-total)[:200]
    return tuple((names[i], int(count[i]), float(total[i]), float(greatest[i]) / 1e9) for i in order if count[i])
