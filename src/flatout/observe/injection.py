"""A lever at work in the child process: what its hooks receive, and what it reports to the parent."""

from __future__ import annotations

from collections.abc import Callable

from flatout.observe.levers import LeverReport
from flatout.observe.observer import Observer

MOST_NOTES = 100
"""A program may make a function or a dataset for each step, and a note of a lever may name it."""


class Injection:
    """One lever at work in one program."""

    def __init__(self, observer: Observer, lever: str, value: str = "") -> None:
        self.observer = observer
        self.lever = lever
        self.value = value
        self.changes = 0
        self.notes: list[str] = []
        self.failed = ""
        self.ready: list[Callable[[], bool]] = []
        """Called before measuring begins: a cache, for example, must be full first."""

    @property
    def text(self) -> str:
        return f"{self.lever}={self.value}" if self.value else self.lever

    def changed(self, what: str = "") -> None:
        """Record that the lever has changed something. A lever without changes found nothing to do: not measured."""
        self.changes += 1
        if what and what not in self.notes and len(self.notes) < 5:
            self.note(what)

    def give_up(self, why: str) -> None:
        """What the lever has changed holds no longer: a trial with it is shown as failed."""
        if self.changes and not self.failed:
            self.failed = why
        self.note(why)

    def take_back(self, what: str, why: str) -> None:
        """A change that was recorded as `what` is undone."""
        self.changes = max(self.changes - 1, 0)
        if what in self.notes:
            self.notes.remove(what)
        self.note(why)

    def note(self, text: str) -> None:
        """Record something that the reader of the trial should know."""
        if len(self.notes) < MOST_NOTES and text not in self.notes:
            self.notes.append(text)

    def report(self) -> LeverReport:
        return LeverReport(self.changes, tuple(self.notes), self.failed)
