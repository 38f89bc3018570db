"""Arithmetic of time intervals in numpy: unions, and how much of each step they cover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """A sorted union of disjoint intervals."""

    start: Floats
    end: Floats

    @staticmethod
    def empty() -> Intervals:
        return Intervals(np.zeros(0), np.zeros(0))

    @staticmethod
    def union(parts: Iterable[tuple[Floats, Floats]]) -> Intervals:
        pairs = [(start, end) for start, end in parts if len(start)]
        if not pairs:
            return Intervals.empty()
        start = np.concatenate([pair[0] for pair in pairs])
        end = np.concatenate([pair[1] for pair in pairs])
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        reach = np.maximum.accumulate(end)
        # A new interval begins where the start lies beyond everything seen before.
        fresh = np.concatenate(([True], start[1:] > reach[:-1]))
        firsts = np.flatnonzero(fresh)
        lasts = np.concatenate((firsts[1:] - 1, [len(start) - 1]))
        return Intervals(start[firsts], reach[lasts])

    def joined(self, other: Intervals) -> Intervals:
        return Intervals.union([(self.start, self.end), (other.start, other.end)])

    def total(self) -> float:
        return float((self.end - self.start).sum())

    def within(self, start: Floats, end: Floats) -> Floats:
        """Covered length inside each of the given spans."""
        return self._up_to(end) - self._up_to(start)

    def contains(self, moments: Floats) -> NDArray[np.bool_]:
        if not len(self.start):
            return np.zeros(len(moments), dtype=bool)
        index = np.searchsorted(self.start, moments, side="right") - 1
        return (index >= 0) & (moments < self.end[np.maximum(index, 0)])

    def _up_to(self, moments: Floats) -> Floats:
        if not len(self.start):
            return np.zeros(len(moments))
        before = np.concatenate(([0.0], np.cumsum(self.end - self.start)))
        index = np.searchsorted(self.start, moments, side="right")
        covered = before[index]
        # The last interval begun may still be open at that moment.
        last = np.maximum(index - 1, 0)
        over = np.where(index > 0, np.maximum(self.end[last] - moments, 0.0), 0.0)
        return np.asarray(covered - over)
