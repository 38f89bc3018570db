"""The levers of a child process, as the observer and the trial see them."""

from __future__ import annotations

from collections.abc import Mapping
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


def failed_levers(reports: Mapping[str, LeverReport]) -> str:
    """Which could not be installed, or have given up, and why; empty where all are at work."""
    failed = ((name, one) for name, one in reports.items() if one.failed)
    return "; ".join(
        f"{name} {'gave up' if one.changes else 'could not be installed'}: {one.failed}" for name, one in failed
    )


def not_at_work(reports: Mapping[str, LeverReport]) -> str:
    """Why a run with these levers shows nothing of them; empty where it may."""
    idle = bool(reports) and not any(one.changes for one in reports.values())
    return failed_levers(reports) or (f"{', '.join(reports)} changed nothing" if idle else "")


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
