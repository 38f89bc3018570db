"""What a race says of one contestant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flatout.model.case import Interval

Status = Literal["won", "lost", "noise", "failed", "timeout"]


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
