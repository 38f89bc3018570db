"""Arithmetic on many time intervals: what they cover together, and the own time of nested ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


def merge(start: Times, end: Times) -> tuple[Times, Times]:
    """Overlapping intervals joined; the result is sorted and disjoint."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not start.size:
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return start[first], end[last]


def covered(start: Times, end: Times) -> int:
    """Exact length of the union."""
    begin, stop = merge(start, end)
    return int((stop - begin).sum())


def overlap(points: tuple[Times, Times], low: Times, high: Times) -> Times:
    """How much of each window [low, high) the disjoint, sorted intervals cover."""
    begin, stop = points
    if not begin.size:
        return np.zeros(low.size, np.int64)
    total = np.concatenate(([0], np.cumsum(stop - begin)))

    def until(time: Times) -> Times:
        index = np.searchsorted(begin, time, side="right")
        last = np.maximum(index - 1, 0)
        inside = np.minimum(time, stop[last]) - begin[last]
        return np.where(index > 0, total[last] + np.maximum(inside, 0), 0)

    return until(high) - until(low)


def gaps(points: tuple[Times, Times], low: int, high: int) -> tuple[Times, Times]:
    """The gaps of the disjoint, sorted intervals between low and high."""
    begin, stop = points
    start = np.clip(np.concatenate(([low], stop)), low, high)
    end = np.clip(np.concatenate((begin, [high])), low, high)
    keep = end > start
    return start[keep], end[keep]


def levels(start: Times, end: Times, depth: int = 200) -> Iterator[tuple[Times, Times, Times]]:
    """Peel nested intervals: (indices at this depth, the deeper ones, their parents at this depth).

    One vectorised pass per depth instead of a stack walked event by event. Intervals that overlap without
    nesting look like ever deeper levels: peeling ends at `depth`.
    """
    indices = np.lexsort((-end, start)).astype(np.int64)
    for _ in range(depth):
        if not indices.size:
            return
        starts, ends = start[indices], end[indices]
        reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
        top = starts >= reach
        outer, inner = indices[top], indices[~top]
        position = np.searchsorted(start[outer], start[inner], side="right") - 1
        yield outer, inner, outer[position] if inner.size else inner
        indices = inner


def self_times(start: Times, end: Times, depth: int = 16) -> Times:
    """Duration of each interval without the intervals directly inside it (of one thread: they nest)."""
    own: Times = end - start
    parents: tuple[Times, Times] | None = None
    for outer, inner, parent in levels(start, end, depth):
        if parents is not None:
            known, parent_of = parents
            above = parent_of[np.searchsorted(known, outer)]
            np.subtract.at(own, above, np.minimum(end[outer], end[above]) - start[outer])
        order = np.argsort(inner)
        parents = inner[order], parent[order]
    np.maximum(own, 0, out=own)
    return own


def innermost(points: Times, start: Times, end: Times) -> Times:
    """Index of the deepest interval that covers each point, -1 where none does."""
    found = np.full(points.size, -1, np.int64)
    for outer, _, _ in levels(start, end):
        position = np.searchsorted(start[outer], points, side="right") - 1
        candidate = outer[np.maximum(position, 0)]
        hit = (position >= 0) & (end[candidate] > points)
        found[hit] = candidate[hit]
    return found


@dataclass(frozen=True)
class Intervals:
    """A sorted union of disjoint intervals, which can be combined with others."""

    start: Times
    end: Times

    @staticmethod
    def union(parts: Iterable[tuple[Times, Times]]) -> Intervals:
        pairs = [pair for pair in parts if len(pair[0])]
        if not pairs:
            return Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
        start, end = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        return Intervals(*merge(start, end))

    def joined(self, other: Intervals) -> Intervals:
        return Intervals.union([(self.start, self.end), (other.start, other.end)])

    def within(self, low: Times, high: Times) -> Times:
        """Covered length inside each of the given spans."""
        return overlap((self.start, self.end), low, high)

    def holding(self, points: Times) -> Intervals:
        """The intervals that contain at least one of the points."""
        inside = points[self.contains(points)]
        index = np.unique(np.searchsorted(self.start, inside, side="right") - 1)
        return Intervals(self.start[index], self.end[index])

    def contains(self, points: Times) -> NDArray[np.bool_]:
        if not self.start.size:
            return np.zeros(len(points), dtype=bool)
        index = np.searchsorted(self.start, points, side="right") - 1
        return np.asarray((index >= 0) & (points < self.end[np.maximum(index, 0)]))
