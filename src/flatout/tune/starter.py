"""Starts trials of the program and waits until they are warm."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flatout.cures import find
from flatout.measure.race import Exit
from flatout.model.levers import parse
from flatout.process.watchdog import Watchdog
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.trial.fork_servers import ForkServers
from flatout.tune.contestant import Contestant

START_SECONDS = 90.0
COMPILING = 3.0
"""Times as long as others a program may take to start with a lever that compiles."""
BLOCK_SECONDS = 0.3


@dataclass
class Starter:
    """What the trials of one race have in common: directory, watchdog, fork servers, limits."""

    directory: Path
    watchdog: Watchdog
    fork_servers: ForkServers | None = None
    memory_limit: int | None = None
    tell: Callable[[str], None] = lambda text: None
    start_seconds: float = START_SECONDS
    """How long a start may take."""
    keeps: bool = True
    """Whether cells that are kept are restored. All trials of a race do the same."""
    took: list[float] = field(default_factory=list)
    """Seconds of each start so far."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def say(self, text: str) -> None:
        self.tell(text)

    def launch_of(self, one: Contestant) -> Launch:
        return one.launch if self.keeps else replace(one.launch, kept="")

    def start(self, contestants: Sequence[Contestant]) -> None:
        """Start programs, a few at a time, and wait until each is warm. Those that fail leave the race."""
        at_once = max(2, len(os.sched_getaffinity(0)) // 2)
        waiting = [one for one in contestants if one.active]
        starting: list[Contestant] = []
        while waiting or starting:
            while waiting and len(starting) < at_once:
                one = waiting.pop(0)
                self._launch(one)
                starting.append(one)
            self._await_warm(starting.pop(0))

    def _launch(self, one: Contestant) -> None:
        one.host = self
        one.starts += 1
        directory = self.directory / f"{next(self._numbers):03d}-{_slug(one.title)}"
        directory.mkdir(parents=True)
        one.directories.append(directory)
        try:
            one.child = ChildProcess(self.launch_of(one), directory, self.watchdog, self.fork_servers)
        except OSError as error:
            one.leave(Exit("failed", f"it could not be started: {error}"))

    def _await_warm(self, one: Contestant) -> None:
        if one.child is None:
            return
        try:
            compiles = any(find(parse(text)[0]).spec.compiles for text in one.levers)
            warm = one.child.warm(self.start_seconds * (COMPILING if compiles else 1.0), self.memory_limit)
        except Ended as ended:
            self._ended_early(one, str(ended))
            return
        except Overdue as overdue:
            one.leave(Exit("timeout", f"{overdue}, starting up"))
            return
        one.report, one.done, one.ran_kept = warm.levers, warm.steps, warm.ran_kept
        if one.failed_levers():
            one.leave(Exit("failed", one.failed_levers()))
            return
        if one.ran_kept and one.starts > 1:
            one.leave(Exit("failed", f"this start of it ran what earlier ones had restored ({one.ran_kept})"))
            return
        if one.idle() and not one.launch.warm_steps:  # after a fixed number of steps it may still come
            one.unchanged = True
            one.leave(Exit("ended", one.why_idle()))
            return
        self.took.append(time.monotonic() - one.child.started)
        step = warm.seconds / max(warm.steps - 1, 1)
        one.warm_seconds = step
        if one.starts == 1:  # from then on the race decides how many
            one.steps = max(one.steps if step < 0.5 else 1, min(math.ceil(BLOCK_SECONDS / max(step, 1e-5)), 2000))
        one.child.hold()

    def _ended_early(self, one: Contestant, why: str) -> None:
        """Before it was warm. A program that makes fewer calls with a lever, or none, cannot be timed by its steps."""
        assert one.child is not None
        if not one.child.ended_well:
            one.leave(Exit("failed", why))
            return
        made, one.ended_after = one.child.steps_made, one.child.steps_made
        one.unchanged = bool(one.levers)
        one.leave(Exit("ended", f"{why} after {made or 'no'} steps, too few to time it"))


def _slug(text: str) -> str:
    return "".join(ch if ch.isalnum() else "-" for ch in text)[:40].strip("-") or "trial"
