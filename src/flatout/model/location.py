"""Locations in the user's source."""

from __future__ import annotations

from typing import NamedTuple

from flatout.model.record import record


@record(frozen=True)
class Where:
    """A location in the user's source. `code` is that line's text as it was when the program ran."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "(unknown location)"
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Frame(NamedTuple):
    """One frame of a stack of the user's code."""

    file: str
    line: int
    function: str
    first_line: int
    """Of the function."""


Stack = tuple[Frame, ...]
"""Innermost frame first."""


def stack_of(rows: object) -> Stack:
    """A stack as probes record it: a list of lists."""
    return tuple(Frame(*row) for row in rows or ())  # type: ignore[attr-defined]
