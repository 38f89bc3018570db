"""Levers that other machines race: what is asked of them, and of whom. `tune/spread/` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from flatout.measure.race.rules import Until
from flatout.model.vocabulary import StreamKind


@dataclass(frozen=True)
class Wanted:
    """Levers to race, each on top of a base."""

    levers: tuple[str, ...]
    base: tuple[str, ...] = ()
    comparisons: int = 1
    """Levers that are compared with the same program, on all machines together."""
    until: Until = "decided"
    least_step: StreamKind | None = None
    not_steps: tuple[StreamKind, ...] = ()
    """What counts as a step of the program with the base in it, as in `Launch`."""
    ahead: bool = False
    """Whether something has won, or has looked good: there is something to confirm."""
    seconds: float | None = None
    """What they may take, where that is less than all of the time for trying."""


class Spread(Protocol):
    def race(self, wanted: Wanted) -> list[str]:
        """Race these levers; their trials are taken over as they come. Returns those that no other machine could race,
        and that are left for this one."""
