"""A lever at work in the child process: what its hooks receive, and what it reports to the parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


@dataclass(frozen=True)
class LeverReport:
    """What a lever has done so far."""

    changes: int
    """Things that it has changed; 0: it found nothing to change yet."""
    notes: tuple[str, ...] = ()
    failed: str = ""
    """The error with which it could not be installed; empty where it was."""


class Installed(Protocol):
    """All levers of one child, as the observer and the trial see them."""

    def install(self, package: str, module: ModuleType) -> None: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def ready(self) -> bool: ...

    def report(self) -> dict[str, LeverReport]:
        """By the lever as the user types it."""
        ...


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

    def note(self, text: str) -> None:
        """Record something that the reader of the trial should know."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self) -> LeverReport:
        return LeverReport(self.changes, tuple(self.notes), self.failed)
