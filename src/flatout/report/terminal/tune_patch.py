"""The patch on the screen of a tune: its first lines, and which line of it belongs to which finding."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from flatout.model.case import Case, Finding, Trial
from flatout.model.levers import parse
from flatout.model.text import clean_code
from flatout.report.formatting import clean, elide
from flatout.report.terminal.page import Page
from flatout.report.terminal.screen import Room

_IMPORT = re.compile(r"\s*(import|from)\s")
_HUNK = re.compile(r"@@ -(\d+)")
NEAR = 2
"""Lines between a function and its decorator, say: so near, a reader sees that it is the same place."""


def write(case: Case, page: Page, room: Room) -> None:
    if not case.patch or not room.patch:
        return
    lines = [row for row in case.patch.splitlines() if not row.startswith("--- ")]
    note = "this text was measured as well: as fast as the change above, with the same results"
    if len(lines) > room.patch:
        note = f"{room.patch} of {len(lines)} lines"
        lines = _from_what_matters(lines)[: room.patch]
    page.heading("The patch", note)
    for row in lines:
        for piece in _pieces(clean_code(row), page.width - 4):
            page.code(piece)


def _from_what_matters(lines: list[str]) -> list[str]:
    """Without the places before the first one that does more than to import something."""
    name = ""
    begins = [number for number, row in enumerate(lines) if row.startswith(("+++ ", "@@"))]
    for begin, end in itertools.zip_longest(begins, begins[1:]):
        if lines[begin].startswith("+++ "):
            name = lines[begin]
        elif any(_matters(row) for row in lines[begin + 1 : end]):
            return [name, *lines[begin:]]
    return lines


def _matters(row: str) -> bool:
    return row[:1] in "+-" and bool(row[1:].strip()) and not _IMPORT.match(row[1:])


def elsewhere(case: Case, finding: Finding, claim: Trial | None) -> str:
    """Why the patch for a finding changes another line than that of the finding; empty where it does not."""
    cures = {parse(fix.lever)[0] for fix in finding.fixes if fix.lever}
    where = finding.where
    if claim is None or where is None or not where.line or not cures & {parse(text)[0] for text in claim.levers}:
        return ""
    changed = list(_changed(case.patch))
    here = [line for path, line in changed if f"/{where.file}".endswith(f"/{path}")]
    if not changed or any(abs(line - where.line) <= NEAR for line in here):
        return ""
    path, line = (changed[0][0], here[0]) if here else changed[0]
    step = case.steps.where if case.steps is not None else None
    starts = step is not None and (step.file, step.line) == (where.file, where.line)
    at = f"line {line}" if here else f"{clean(path, 60)}:{line}"
    return f"Line {where.line} starts the step; the patch changes {at}." if starts else f"The patch changes {at}."


def _changed(patch: str) -> Iterator[tuple[str, int]]:
    """File and line, as they were before, of all that a patch adds or removes."""
    path, line = "", 0
    for row in patch.splitlines():
        if row.startswith("+++ "):
            path = row[4:].partition("\t")[0].removeprefix("b/")
        elif found := _HUNK.match(row):
            line = int(found[1])
        elif row.startswith("+"):
            yield path, line
        elif row.startswith("-") and not row.startswith("--- "):
            yield path, line
            line += 1
        elif row.startswith(" ") or not row:
            line += 1


def _pieces(row: str, width: int) -> list[str]:
    """A line of a patch: one that changes something is never cut, but goes on in lines that begin as it does."""
    if len(row) <= width or row[:1] not in "+-":
        return [elide(row, width)]
    first, rest, begin = row[:width], row[width:], f"{row[0]}        "
    room = width - len(begin)
    return [first, *(f"{begin}{rest[at : at + room]}" for at in range(0, len(rest), room))]
