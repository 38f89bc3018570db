"""The lines around a location, from the source file on this machine, if it is still the source that ran.

A case may come from somebody else and may name any file. So only Python files are opened, and lines are shown only if
the line that the case quotes is still at its position.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Where
from flatout.source import context

AROUND = 3
LONGEST = 200
LARGEST = 4 * 2**20


@dataclass(frozen=True)
class Frame:
    first: int
    """Number of the first line."""
    lines: tuple[str, ...]
    marked: int
    whole: bool = True
    """False if only the quoted line is known."""


def frame_around(where: Where | None) -> Frame | None:
    if where is None or not where.code or not where.line:
        return None
    lines = _lines(where.file)
    here = where.line - 1
    if 0 <= here < len(lines) and lines[here].strip()[:300] == where.code.strip()[:300]:
        first = max(0, here - AROUND)
        chosen = [line[:LONGEST] for line in lines[first : here + AROUND + 1]]
        return Frame(first + 1, tuple(_dedent(chosen)), where.line)
    return Frame(where.line, (where.code.strip()[:LONGEST],), where.line, whole=False)


def _lines(file: str | None) -> tuple[str, ...]:
    try:
        if not file or not file.endswith(".py") or Path(file).stat().st_size > LARGEST:
            return ()
    except (OSError, ValueError):
        return ()
    return context.lines(file)


def _dedent(lines: list[str]) -> list[str]:
    lines = [line.expandtabs(4) for line in lines]
    common = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[common:] for line in lines]
