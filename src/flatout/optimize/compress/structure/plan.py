"""Chooses the units to remove to meet a target: the least important ones first, and never all of a layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.structure.channels import Channels
from flatout.optimize.compress.structure.importance import Scores, lowest


@dataclass(frozen=True)
class Limits:
    """How many units of a group may be removed."""

    least_share: float = 0.1
    """Share of a group's units that always stays."""
    multiple: int = 8
    """Widths stay multiples of this where a group is wide enough, so that vector units are used fully."""


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
    def removable(self) -> int:
        return len(self._order)

    def removing(self, count: int) -> frozenset[int]:
        """The `count` least important units, except for those that stay because of rounding to a multiple."""
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
        """The smallest set of units whose removal brings the cost down to the target."""
        if cost(self.removing(0)) <= target:
            return frozenset()
        low, high = 0, self.removable
        least = cost(self.removing(high)) if high else cost(frozenset())
        if least > target:
            raise CompressionRefused(
                f"The target of {target:.4g} {what} cannot be reached: with everything removed that may be, it is "
                f"{least:.4g}. Choose a larger share; `held` of a result names the layers whose channels must stay."
            )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cost(self.removing(middle)) <= target else (middle, high)
        return self.removing(high)
