"""The levers of a child process, as the observer and the trial see them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Protocol


@dataclass(frozen=True)
class LeverReport:
    """What a lever has done so far."""

    changes: int
    """Things that it has changed; 0: it found nothing to change yet."""
    notes: tuple[str, ...] = ()
    failed: str = ""
    """The error with which it could not be installed, or why it gave up; empty where it is at work."""


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
