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
"""Of all processors' time, what others may use before a measurement is called disturbed."""
_STAT = Path("/proc/stat")
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")


def idle_seconds() -> float | None:
    """Idle time of all processors together since the machine was started; None where the system does not count it."""
    try:
        fields = _STAT.read_bytes().split(b"\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) * _TICK
    except (OSError, ValueError, IndexError):
        return None


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
        return taken_by_others(now.at - self.at, used, now.idle - self.idle, os.cpu_count() or 1)
