"""What a cause declares: `CAUSE = Cause(…)` at the end of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from flatout.model.case import Case, Finding
from flatout.model.errors import PluginInvalid
from flatout.source.analysis.patterns import Pattern

Group = Literal["input", "graph", "numerics", "hardware", "api", "run", "job"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""In the order in which lists show them."""

WORTH = 0.05
"""Share of the step from which a finding is worth a change."""

Detector = Callable[[Case], Iterable[Finding]]


@dataclass(frozen=True)
class Cause:
    """A cause is found in a run (`in_run`), in source (`patterns`), or in both.

    A special cause names the general ones that it accounts for, in one of two ways. Both take the name of a cause, or
    `cause/detector` for the findings of one of its detectors. `_precedence.py` applies them.
    """

    group: Group
    cures: tuple[str, ...] = ()
    """Names of the cures that may help."""
    in_run: Detector | Mapping[str, Detector] | None = None
    """Yields a Finding for each line at which the cause costs time. A cause whose findings have to be told apart by
    `explains` or `replaces` has several detectors, by name."""
    patterns: tuple[Pattern, ...] = ()
    """How the cause looks in source: functions marked with `@pattern`."""
    explains: tuple[str, ...] = ()
    """Findings that are left out where this cause, with others that explain them, has at least half of their cost."""
    replaces: tuple[str, ...] = ()
    """Findings that are left out, whatever they cost, where this cause is found and worth a change."""
    ends_program: bool = False
    """Whether it ends the program: then it is listed before causes that only slow it down."""

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise PluginInvalid(f"{self.group!r} is no group of causes. The groups are: {', '.join(GROUPS)}.")

    @property
    def detectors(self) -> Mapping[str, Detector]:
        """All detectors by name; a single one has no name."""
        if self.in_run is None:
            return {}
        return self.in_run if isinstance(self.in_run, Mapping) else {"": self.in_run}
