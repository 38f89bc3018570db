"""Where the wall clock of a run went: a tree of parts that adds up to it.

Seconds of a part include those of its parts; what is left is its own. Parts do not overlap: time that another thread or
a device works beside the main thread is not in it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Literal

from flatout.model.codec import LATER
from flatout.model.location import Where
from flatout.model.record import record

PartKind = Literal[
    "interpreter", "import", "before", "prepare", "tracing", "steps", "epoch-start", "validation", "prediction",
    "callback", "checkpoint", "summary", "program", "line", "package", "exit", "observer",
    "unattributed",
]  # fmt: skip
"""interpreter: until the first line of the program. import: of one package. before: lines of the program before the
first step. prepare: what `fit` does before its first epoch. tracing: traces, and what the first call after one does.
epoch-start: an iterator made anew, until its first batch. program: lines of the program after the first step that are
none of these. observer: flatout's own tracing. line, package: where the time of a part goes, as samples show it. exit:
from the program's last line to the end of the process."""

GROUPS: dict[str, tuple[PartKind, ...]] = {
    "start": ("interpreter", "import", "before", "prepare"),
    "tracing": ("tracing",),
    "steps": ("steps",),
    "between epochs": ("epoch-start",),
    "validation": ("validation",),
    "prediction": ("prediction",),
    "callbacks": ("callback",),
    "checkpoints": ("checkpoint",),
    "summaries": ("summary",),
    "program": ("program",),
    "exit": ("exit",),
    "flatout": ("observer",),
    "unattributed": ("unattributed",),
}
"""The parts of a run under the words that a reader sees, in the order in which they come."""


@record(frozen=True)
class RunPart:
    kind: PartKind
    name: str = ""
    """`Gallery.on_epoch_end`, `tensorflow`, `fit`: what it is, in the words of the program."""
    seconds: float = 0.0
    count: int = 0
    """Calls; of steps: how many. 0 where it was seen by samples alone."""
    where: Where | None = None
    parts: tuple[RunPart, ...] = ()
    via: tuple[Where, ...] = field(default=(), metadata=LATER)
    """Of a line: those that led to it, from the outermost."""

    @property
    def own_seconds(self) -> float:
        return max(self.seconds - sum(part.seconds for part in self.parts), 0.0)

    def lines(self) -> list[RunPart]:
        """The lines of the program that its time goes to, the most expensive first."""
        return sorted((part for part in self.parts if part.kind == "line"), key=lambda part: -part.seconds)

    def under(self, *kinds: PartKind) -> float:
        """Seconds of these kinds inside of it, at whatever depth."""
        return sum(part.seconds if part.kind in kinds else part.under(*kinds) for part in self.parts)


@record(frozen=True)
class Stretch:
    """A time in which the main thread did mostly one thing."""

    at: float
    """Seconds after the start of the process."""
    seconds: float
    kind: PartKind
    name: str = ""
    where: Where | None = None


@record(frozen=True)
class RunTree:
    seconds: float
    """From the start of the process to its end, as the one who started it sees them."""
    parts: tuple[RunPart, ...] = ()
    epochs: int = 0
    complete: bool = True
    """Whether the program's end was seen: not where it was killed."""
    first_step: float | None = None
    """Seconds until the first step began."""
    looks: int = 0
    """Samples of the main thread."""
    strip: tuple[Stretch, ...] = field(default=(), metadata=LATER)
    """The run over time, in at most a few hundred stretches."""
    epoch_starts: tuple[float, ...] = field(default=(), metadata=LATER)
    """Seconds after the start of the process; of many epochs a part."""

    def of(self, *kinds: PartKind) -> list[RunPart]:
        """The parts of these kinds, the most expensive first."""
        return sorted((part for part in self.parts if part.kind in kinds), key=lambda part: -part.seconds)

    def seconds_of(self, *kinds: PartKind) -> float:
        return sum(part.seconds for part in self.of(*kinds))

    def under(self, *kinds: PartKind) -> float:
        """Seconds of these kinds at whatever depth: predictions that a callback makes as well."""
        return RunPart("program", parts=self.parts).under(*kinds)

    def groups(self) -> Iterator[tuple[str, float]]:
        """What a reader sees as one thing, with its seconds; empty ones are left out."""
        for name, kinds in GROUPS.items():
            seconds = self.seconds_of(*kinds)
            if seconds > 0:
                yield name, seconds
