"""What the coordinator asks of a node, and what the node tells it, line by line.

The clocks of machines differ: moments are told as seconds that have passed, or that are left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flatout.trial.child_process import Launch
from flatout.tune.elsewhere import Wanted
from flatout.tune.request import TuneRequest


@dataclass(frozen=True)
class Time:
    """The clock of the tune."""

    budget: float
    spent: float
    reserved: float
    for_run: float


@dataclass(frozen=True)
class Assignment:
    """One race: levers, and all that a node has to know of the tune."""

    wanted: Wanted
    request: TuneRequest
    launch: Launch
    case: Any
    """The program as it was observed, in its JSON form."""
    whole: bool
    """Whether it was seen to end."""
    ended_after: int | None
    found: tuple[Any, ...]
    """The trials so far of levers alone, in their JSON form."""
    packages: tuple[str, ...]
    """That the program imports."""
    changed: dict[str, str | None]
    """Variables that it changes before it does."""
    time: Time
    cores: int
    """Processors that the race is to have for itself."""
    beside: int
    """Races that may run on one machine at the same time."""


@dataclass(frozen=True)
class Begun:
    """The race has its processors."""

    cpu: str
    cores: int
    gpu: str = ""


@dataclass(frozen=True)
class Said:
    """For the person at the terminal."""

    text: str


@dataclass(frozen=True)
class Tried:
    trial: Any
    nominated: float | None = None
    promising: float | None = None
    """Its ratio, where it is worth confirming though it was not decided."""


@dataclass(frozen=True)
class Over:
    """The race has come to its end."""

    skipped: dict[str, str] = field(default_factory=dict)
    taken: tuple[tuple[float, ...], ...] = ()
    """Of its rounds, the share of the processors that others had."""
    ended_after: int | None = None
    problem: str = ""
    """Why nothing could be tried, where that is so."""


@dataclass(frozen=True)
class Told:
    """A line of a node."""

    about: Begun | Said | Tried | Over
