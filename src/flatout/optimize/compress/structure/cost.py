"""Counts the parameters and FLOPs of a model with some units removed, without building it."""

from __future__ import annotations

import math
from typing import Any

from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.channels import Channels

NO_UNITS: frozenset[int] = frozenset()


class Costs:
    """The counts of one model. A multiplication with a weight is two FLOPs; what has no weights is not counted."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        found = {id(v): v for layer in graph.layers(channels.model) for v in getattr(layer, "weights", [])}
        self._variables = list(found.values())
        self._cuts: dict[int, list[Any]] = {}
        for cut in channels.ledger.cuts.values():
            self._cuts.setdefault(id(cut.variable), []).append(cut)

    def parameters(self, removed: frozenset[int] = NO_UNITS) -> int:
        return sum(self._size(variable, removed) for variable in self._variables)

    def flops(self, removed: frozenset[int] = NO_UNITS) -> float:
        return sum(2 * times * self._size(variable, removed) for variable, times in self._channels.ledger.work)

    def _size(self, variable: Any, removed: frozenset[int]) -> int:
        size: int = math.prod(variable.shape)
        if removed:
            for cut in self._cuts.get(id(variable), []):
                size = size // len(cut.units) * len(self._channels.ledger.kept(cut.units, removed))
        return size


def of(model: Any) -> tuple[int, float]:
    """(parameters, FLOPs for one sample)."""
    from flatout.optimize.compress.structure.channels import follow

    costs = Costs(follow(model))
    return costs.parameters(), costs.flops()
