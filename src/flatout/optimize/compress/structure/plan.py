"""Which units to remove so that a target is met: the least important of all first, no layer emptied."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.structure.channels import Channels
from flatout.optimize.compress.structure.importance import Scores, lowest


@dataclass(frozen=True)
class Limits:
    """How far a group may be thinned."""

    least_share: float = 0.1
    """Share of a group's units that stays in any case."""
    multiple: int = 8
    """Widths are kept at multiples of this where a group is wide enough: vector units run full."""


class Planner:
    def __init__(self, channels: Channels, scores: Scores, limits: Limits = Limits()) -> None:  # noqa: B008  # frozen
        self._groups = [lowest(group, scores) for group in channels.groups]
        self._limits = limits
        ranked = []
        for number, units in enumerate(self._groups):
            spare = len(units) - max(1, math.ceil(limits.least_share * len(units)))
            ranked += [(scores.get(unit, 0.0), number) for unit in units[:spare]]
        self._order = [number for _, number in sorted(ranked)]

    @property
    def most(self) -> int:
        return len(self._order)

    def removing(self, count: int) -> frozenset[int]:
        """The `count` least important units, less those that rounding to a multiple brings back."""
        gone = [0] * len(self._groups)
        for number in self._order[:count]:
            gone[number] += 1
        removed: set[int] = set()
        for units, amount in zip(self._groups, gone, strict=True):
            left, step = len(units) - amount, self._limits.multiple
            if len(units) >= 2 * step:
                left = min(len(units), math.ceil(left / step) * step)
            removed.update(units[: len(units) - left])
        return frozenset(removed)

    def meeting(self, cost: Callable[[frozenset[int]], float], target: float, what: str) -> frozenset[int]:
        """The fewest units whose removal brings the cost down to the target."""
        if cost(self.removing(0)) <= target:
            return frozenset()
        low, high = 0, self.most
        least = cost(self.removing(high)) if high else cost(frozenset())
        if least > target:
            raise CompressionRefused(
                f"The target of {target:.4g} {what} cannot be reached: with all that may be removed it is {least:.4g}. "
                "Ask for less, or see `held` of the result for the layers whose channels must stay."
            )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cost(self.removing(middle)) <= target else (middle, high)
        return self.removing(high)
