"""One run of the program from its start to its end: shielded like any trial, held nowhere, with its own imports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flatout.model.errors import InvalidMessage
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
    exit_code: int | None
    """None where it was stopped because its time was up."""
    steps: int = 0
    importing: float = 0.0
    """Seconds until TensorFlow and Keras were imported."""
    last_line: str = ""
    """That it has printed; after an exception it names the exception."""

    @property
    def ended(self) -> bool:
        return self.exit_code is not None

    @property
    def failed(self) -> bool:
        return self.exit_code not in (None, 0)

    def ends_like(self, other: Run) -> bool:
        return self.exit_code == other.exit_code and (not self.failed or self.last_line == other.last_line)


def run(
    launch: Launch, directory: Path, watchdog: Watchdog, timeout: float, tick: Callable[[], None] = lambda: None
) -> Run:
    """Start it as a program of its own, and wait for its end or until the time is up."""
    directory.mkdir(parents=True)
    command = prepared(launch, directory, WholeSettings(launch.least_step, launch.not_steps))
    began = time.monotonic()
    try:
        code = run_until(command, directory / "output.txt", watchdog, began + timeout, tick)
        seconds = time.monotonic() - began
    finally:
        remove_scratch(directory)
    seen = _seen(directory / FILE)
    return Run(seconds, code, seen.steps, seen.importing, refusals.last_words(directory / "output.txt"))


def _seen(path: Path) -> StepsSeen:
    try:
        return decode(path.read_text(encoding="ascii"), StepsSeen)
    except (OSError, InvalidMessage):
        return StepsSeen(0, 0.0)
