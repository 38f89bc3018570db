"""What a rewrite of a dataset receives besides the dataset, and what it returns.

A rewrite decides neither whether it pays nor whether the elements stay the same: each proposal is compared and raced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flatout.model.errors import Internal
from flatout.model.vocabulary import Equivalence
from flatout.pipeline import stage_costs


class Refused(Internal):
    """Why a rewrite that looked possible is not made; shown to the user."""


@dataclass(frozen=True)
class Proposal:
    dataset: Any
    what: str
    """What was changed, in words."""
    setting: str = ""
    """The value in `threadpool=16`."""
    equivalence: Equivalence | None = None
    """Where it differs from that of the cure."""


@dataclass
class Context:
    """Limits, and what is known about the pipeline."""

    memory: int
    """Bytes that a cache may hold."""
    disk: str | None = None
    """A directory for caches on disk, where one is allowed."""
    allow: frozenset[str] = frozenset()
    """Equivalences that are allowed besides `exact`."""
    count: Callable[[Any], int | None] = lambda stage: None
    """Elements that a stage yields in an epoch; None where that is unknown and takes too long to count."""
    costs: stage_costs.Costs = field(default_factory=stage_costs.Costs)

    def cost(self, stage: Any) -> stage_costs.Cost | None:
        try:
            return self.costs.of(stage)
        except Exception:  # a stage that cannot be measured has no known cost
            return None

    def waits(self, stage: Any) -> bool:
        """Whether a stage spends most of its time neither computing nor calling others."""
        cost = self.cost(stage)
        return cost is not None and cost.ms > 0.2 and cost.cpu_ms < 0.5 * cost.ms
