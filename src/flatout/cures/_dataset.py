"""What a rewrite is given besides the dataset, and what it answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flatout.model.errors import Internal
from flatout.pipeline import costing


class Unfit(Internal):
    """Why a rewrite that looked possible is not made; said to the user."""


@dataclass(frozen=True)
class Proposal:
    dataset: Any
    what: str
    """What was changed, in words."""
    setting: str = ""
    """The value in `threadpool=16`."""
    equivalence: str = ""
    """Where it is another one than the rewrite's own."""


@dataclass
class Room:
    """Limits, and what is known of the pipeline."""

    memory: int
    """Bytes that a cache may hold."""
    disk: str | None = None
    """A directory for caches on disk, where one is allowed."""
    allow: frozenset[str] = frozenset()
    count: Callable[[Any], int | None] = lambda stage: None
    """Elements that a stage gives in an epoch; None where that is not known and takes too long to find out."""
    costs: costing.Costs = field(default_factory=costing.Costs)

    def cost(self, stage: Any) -> costing.Cost | None:
        try:
            return self.costs.of(stage)
        except Exception:  # a stage that cannot be measured is one that nothing is known of
            return None

    def waits(self, stage: Any) -> bool:
        """Whether a stage spends most of its time neither computing nor calling others."""
        cost = self.cost(stage)
        return cost is not None and cost.ms > 0.2 and cost.cpu_ms < 0.5 * cost.ms
