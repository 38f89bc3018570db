"""One run of the program from its start to its end: shielded like any trial, held nowhere, with its own imports."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flatout.model.errors import InvalidMessage
from flatout.model.text import clean
from flatout.process.launch import run_until
from flatout.process.messages import decode
from flatout.process.watchdog import Watchdog
from flatout.trial import refusals
from flatout.trial.child.whole import FILE
from flatout.trial.child_process import Launch, prepared, remove_scratch
from flatout.trial.messages import StepsSeen
from flatout.trial.settings import WholeSettings


@dataclass(frozen=True)
class Run:
    """How a whole run went."""

    seconds: float
    """Without those that flatout took to start, to put its probes in after imports, and to end."""
    exit_code: int | None
    """None where it was stopped because its time was up."""
    steps: int = 0
    importing: float = 0.0
    """Seconds until TensorFlow and Keras were imported."""
    last_line: str = ""
    """That it has printed; after an exception it names the exception."""
    looping: float = 0.0
    """Seconds from the end of its first step to the end of its last: what a longer run has more of."""
    rank: int = 0
    """Of what was counted as a step."""
    gave_up: str = ""
    """Which of its levers were not at work to its end, and why."""

    @property
    def ended(self) -> bool:
        return self.exit_code is not None

    @property
    def failed(self) -> bool:
        return self.exit_code not in (None, 0)

    def ends_like(self, other: Run) -> bool:
        """With the same exit code and, where that tells of a failure, the same words; their numbers may differ."""
        return self.exit_code == other.exit_code and (not self.failed or _words(self) == _words(other))


def run(
    launch: Launch,
    directory: Path,
    watchdog: Watchdog,
    timeout: float,
    tick: Callable[[], None] = lambda: None,
    *,
    watched: bool = False,
) -> Run:
    """Start it as a program of its own, and wait for its end or until the time is up. `watched`: the recording in the
    directory has the tree of the run."""
    directory.mkdir(parents=True)
    command = prepared(launch, directory, WholeSettings(launch.least_step, launch.not_steps, watched))
    began = time.monotonic()
    try:
        code = run_until(command, directory / "output.txt", watchdog, began + timeout, tick)
        seconds = time.monotonic() - began
    finally:
        remove_scratch(directory)
    seen = _seen(directory / FILE)
    if watched:
        write_times(directory, began, began + seconds)
    last_line = refusals.last_words(directory / "output.txt")
    return Run(
        max(seconds - seen.own, 1e-3),
        code,
        seen.steps,
        seen.importing,
        last_line,
        seen.seconds,
        seen.rank,
        clean(seen.failed, 400),
    )


def _words(one: Run) -> str:
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "0", one.last_line)


def write_times(directory: Path, began: float, ended: float) -> None:
    """When the process began and ended, seen from outside: what the tree of the run adds up to."""
    times = {"kind": "launch", "began": began, "ended": ended}
    with contextlib.suppress(OSError):
        (directory / "state-launch.jsonl").write_text(json.dumps(times) + "\n", encoding="ascii")


def _seen(path: Path) -> StepsSeen:
    try:
        return decode(path.read_text(encoding="ascii"), StepsSeen)
    except (OSError, InvalidMessage):
        return StepsSeen(0, 0.0)
