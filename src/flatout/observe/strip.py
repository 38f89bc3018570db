"""What a run did when: the looks of the sampler in as many moments as fit a page, however long the run takes.

A moment is a tenth of a second at first. When there are too many, two neighbours become one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

MOST_MOMENTS = 400
FIRST_SECONDS = 0.1
MOST_IN_A_MOMENT = 4
"""Stacks of one moment that are written, the most frequent first."""


class Strip:
    def __init__(self, began: float) -> None:
        self.began = began
        self.width = FIRST_SECONDS
        self.moments: list[dict[int, float]] = []
        """Seconds by the number of a stack."""

    def add(self, at: float, stack: int, seconds: float) -> None:
        """A look at this stack, which stands for the seconds before it."""
        index = int(max(at - seconds / 2 - self.began, 0.0) / self.width)
        while index >= MOST_MOMENTS:
            self._halve()
            index //= 2
        while len(self.moments) <= index:
            self.moments.append({})
        moment = self.moments[index]
        moment[stack] = moment.get(stack, 0.0) + seconds

    def _halve(self) -> None:
        merged = []
        for first in range(0, len(self.moments), 2):
            both: dict[int, float] = defaultdict(float)
            for moment in self.moments[first : first + 2]:
                for stack, seconds in moment.items():
                    both[stack] += seconds
            merged.append(dict(both))
        self.moments = merged
        self.width *= 2

    def written(self, places: dict[int, int]) -> dict[str, Any]:
        """`places`: by the number of a stack, the place of its row in what is written; others are left out."""
        moments = []
        for moment in list(self.moments):
            known = [(places[stack], seconds) for stack, seconds in list(moment.items()) if stack in places]
            known.sort(key=lambda one: -one[1])
            moments.append([[place, round(seconds, 3)] for place, seconds in known[:MOST_IN_A_MOMENT]])
        return {"began": self.began, "width": self.width, "moments": moments}
