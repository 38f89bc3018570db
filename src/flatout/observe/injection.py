"""What a lever is given inside the child, and what it reports back."""

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
        self.ready: list[Callable[[], bool]] = []
        """Asked before measuring begins: a cache, for one, must be full first."""

    @property
    def text(self) -> str:
        return f"{self.lever}={self.value}" if self.value else self.lever

    def changed(self, what: str = "") -> None:
        """The lever has changed something. One that never says so had nothing to change, and is not measured."""
        self.changes += 1
        if what and what not in self.notes and len(self.notes) < 5:
            self.note(what)

    def note(self, text: str) -> None:
        """Something the reader of the trial should know."""
        if text not in self.notes:
            self.notes.append(text)
