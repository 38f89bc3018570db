"""What takes part in a race, what it has run so far, and what becomes of it."""

from __future__ import annotations

import functools
import statistics
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from flatout.model.case import Interval

Status = Literal["won", "lost", "noise", "failed", "timeout"]


@dataclass(frozen=True)
class Block:
    """Some work timed together: steps of a program, calls of a model, elements of a pipeline."""

    times: Sequence[float]
    """Seconds of each call. A call does one unit of work, or several."""
    units: int
    cpu_seconds: float
    taken: float = 0.0
    """The share of all processors that other processes had meanwhile, 0 to 1; 0 where it is not known."""

    @functools.cached_property
    def unit_seconds(self) -> float:
        """The mean: what a stream of units takes, hiccups included."""
        return sum(self.times) / self.units

    @functools.cached_property
    def usual_seconds(self) -> float:
        """Of the median call: a single long one (a trace, a checkpoint) does not show in it."""
        return statistics.median(self.times) * len(self.times) / self.units

    @property
    def cpu_unit_seconds(self) -> float:
        return self.cpu_seconds / self.units


@dataclass(frozen=True)
class Exit:
    """Why a contestant takes no further part."""

    why: Literal["finished", "decided", "given-up", "behind", "ended", "failed", "timeout"]
    """`finished`: the rounds or the time were used up; `ended`: it has no more work to be timed."""
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """`won` and `lost` are beyond the noise against each baseline; `noise` is everything else that ran."""

    status: Status
    speedup: Interval | None = None
    """Time of the baselines over that of the contestant; None where there were too few rounds for an interval."""
    cpu: Interval | None = None
    """As `speedup`, for the CPU time of a unit."""
    rounds: int = 0
    note: str = ""
    so_far: float | None = None
    """The ratio, also where it has no interval yet."""

    @property
    def undecided(self) -> bool:
        """There were too few rounds to tell."""
        return self.status == "noise" and self.speedup is None


@dataclass(eq=False)
class Contestant(ABC):
    """Runs a block of its work when the race asks for one. Between two blocks it must use no processor."""

    blocks: list[Block | None] = field(default_factory=list, kw_only=True)
    """One for each round of the race; None where it did not take part."""
    exit: Exit | None = field(default=None, kw_only=True)
    verdict: Verdict | None = field(default=None, kw_only=True)
    """What the race has decided, once it has left."""
    varies: bool = field(default=False, kw_only=True)
    """Its units differ from each other, and so does the ratio from block to block: what counts is their sum."""
    counts_from: int = field(default=0, kw_only=True)
    """The first round that counts in a claim. Rounds by which it was chosen among others do not: the best of several
    looks better than it is."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As it is shown."""

    @abstractmethod
    def run_block(self) -> Block | Exit | None:
        """Time one block. An Exit takes the contestant out of the race; None leaves this round out."""

    def close(self) -> None:  # noqa: B027  (most of them, not all, hold something)
        """Free what it holds; called when it leaves the race. May be called more than once."""

    @property
    def active(self) -> bool:
        return self.exit is None

    @property
    def broken(self) -> bool:
        return self.exit is not None and self.exit.why in ("failed", "timeout")

    @property
    def note(self) -> str:
        return self.exit.note if self.exit is not None else ""

    def leave(self, exit: Exit) -> None:
        self.exit = exit
        self.close()

    def renew(self) -> None:
        """Take part again, in a fresh process; what is broken or has no more work stays out."""
        self.close()
        if self.exit is not None and self.exit.why not in ("failed", "timeout", "ended"):
            self.exit = self.verdict = None

    # ── what was measured, a value for each round ────────────────────────────────────────────────────────────

    def unit_times(self) -> list[float | None]:
        """Seconds of a unit. A subclass may know which calls of a block not to count."""
        return [block.unit_seconds if block else None for block in self.blocks]

    def usual_times(self) -> list[float | None]:
        return [block.usual_seconds if block else None for block in self.blocks]

    def cpu_times(self) -> list[float | None]:
        # A ratio needs a divisor: a block of pure waiting may have used none.
        return [max(block.cpu_unit_seconds, 1e-9) if block else None for block in self.blocks]

    def unit_seconds(self) -> float | None:
        """Of the median round; None before the first."""
        times = [time for time in self.unit_times() if time is not None]
        return statistics.median(times) if times else None
