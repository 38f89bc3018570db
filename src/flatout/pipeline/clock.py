"""Times of a piece of work that runs on one thread after the other: wall, CPU, and how long others had the cores.

On a machine with other things to do, a stage that computes is kept from its core, and one that sleeps wakes late. Linux
counts for each thread how long it was ready to run and did not; that time belongs to no stage and is taken out.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

TASKS = "/proc/self/task"


@dataclass(frozen=True)
class Times:
    """Seconds."""

    wall: float
    """Without the time that the threads had to queue for a core; never less than what they have computed."""
    cpu: float


@dataclass(frozen=True)
class Clock:
    """A moment from which to measure."""

    wall: float
    cpu: float
    queued: dict[str, int]

    @classmethod
    def now(cls) -> Clock:
        queued = _queued()
        return cls(time.perf_counter(), time.process_time(), queued)

    def passed(self) -> Times:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        later = _queued()
        queued = sum(later[thread] - self.queued.get(thread, 0) for thread in later) / 1e9
        # Threads that queue side by side are counted twice; a stage on one thread takes at least its CPU time.
        return Times(min(wall, max(wall - queued, cpu)), cpu)


def _queued() -> dict[str, int]:
    """Nanoseconds that each thread was ready and did not run; empty where nobody counts."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in os.listdir(TASKS):
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"{TASKS}/{thread}/schedstat") as stream:
                found[thread] = int(stream.read().split()[1])
    return found
