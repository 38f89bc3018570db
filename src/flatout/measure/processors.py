"""How much of the processors other processes, or other guests of the host, take from a program.

Linux counts the time in which the processors were idle. Time that was neither idle nor used by the program was taken by
something else; a host that gives its processors to other guests counts as such.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Evidence
from flatout.model.evidence.program import CpuUse

STARVED = 0.25
"""Of the usable processors' time, what others may use before a measurement is called disturbed."""
_STAT = Path("/proc/stat")
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")


def usable() -> tuple[int, ...]:
    """The processors that this process may run on; what others do on the rest of the machine takes nothing from it."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(os.sched_getaffinity(0))
    return tuple(range(os.cpu_count() or 1))


def count() -> int:
    """How many processors this process may run on."""
    return len(usable())


def idle_seconds() -> float | None:
    """Idle time of the usable processors since the machine was started; None where the system does not count it."""
    wanted = {b"cpu%d" % number for number in usable()}
    try:
        rows = [row.split() for row in _STAT.read_bytes().split(b"\n") if row.startswith(b"cpu")]
        ticks = [int(row[4]) + int(row[5]) for row in rows if row[0] in wanted]
    except (OSError, ValueError, IndexError):
        return None
    return sum(ticks) * _TICK if len(ticks) == len(wanted) else None


def taken_by_others(wall: float, used: float, idle: float, cores: int) -> float:
    """The share of `cores` over `wall` seconds that was neither `used` by the program nor `idle`, 0 to 1."""
    if wall <= 0 or cores <= 0:
        return 0.0
    return min(max(1 - (used + idle) / (wall * cores), 0.0), 1.0)


def others_in(evidence: Iterable[Evidence]) -> float | None:
    """The share that others had while the steps of a case ran; None where the case does not have it."""
    for item in evidence:
        if isinstance(item, CpuUse) and item.idle is not None and item.cores:
            return round(taken_by_others(1.0, item.used, item.idle, item.cores), 4)
    return None


@dataclass(frozen=True)
class Mark:
    """A moment from which on the processors are watched."""

    at: float
    idle: float | None

    @classmethod
    def now(cls) -> Mark:
        return cls(time.monotonic(), idle_seconds())

    def taken_since(self, used: float) -> float:
        """The share that others have taken since then. `used`: processor seconds of the program in the same time."""
        now = Mark.now()
        if self.idle is None or now.idle is None:
            return 0.0
        return taken_by_others(now.at - self.at, used, now.idle - self.idle, count())
