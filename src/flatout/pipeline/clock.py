"""Wall and CPU time of a piece of work, without the time that its threads waited for a core.

On a busy machine a stage that computes waits for a core, and one that sleeps wakes late. Linux counts for each thread
how long it was ready to run and did not; that time belongs to no stage and is subtracted.
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
    """Without the time that the threads queued for a core; never less than the CPU time."""
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
    """Nanoseconds that each thread was ready and did not run; empty where the kernel does not count them."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in os.listdir(TASKS):
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"{TASKS}/{thread}/schedstat") as stream:
                found[thread] = int(stream.read().split()[1])
    return found
