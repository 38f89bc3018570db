"""Each finding with the code around it, its cure and its page."""

from __future__ import annotations

from flatout.check.output import View
from flatout.check.output.concise import cost, location, mark, summary
from flatout.model.text import clean
from flatout.source.analysis.patterns import Diagnostic

_AROUND = 2
_WIDEST = 200


def render(view: View) -> str:
    parts = []
    for path, item in view.report.all():
        lines = view.texts.get(path, []) if item.cell is None else [""] * (item.line - 1) + [item.code]
        parts.append(
            f"{item.full_name}{cost(item)}{mark(item)}\n"
            f"  {clean(item.message)}\n"
            f"  --> {location(path, item)}\n"
            f"{_frame(lines, item)}"
            f"  cure: {clean(item.advice)} ({item.equivalence})\n"
            f"{_assumed(item)}"
            f"  more: flatout explain {item.cause}\n"
        )
    return "\n".join([*parts, summary(view)])


def _assumed(item: Diagnostic) -> str:
    if item.repair is None or item.repair.safe or not item.repair.assumes:
        return ""
    return f"  the unsafe fix assumes: {clean(item.repair.assumes)}\n"


def _frame(lines: list[str], item: Diagnostic) -> str:
    first = max(item.line - _AROUND, 1) if item.cell is None else item.line
    last = min(item.line + _AROUND, len(lines))
    width = len(str(last))
    rows = [f"{'':{width}} |"]
    for number in range(first, last + 1):
        text = _visible(lines[number - 1])
        rows.append(f"{number:{width}} | {text}".rstrip())
        if number == item.line:
            end = item.end_column if item.end_line == item.line else len(lines[number - 1]) + 1
            start = item.column - 1 if item.cell is None else 0
            length = max(min(end, len(text) + 1) - item.column, 1)
            rows.append(f"{'':{width}} | {' ' * min(start, _WIDEST)}{'^' * length}")
    rows.append(f"{'':{width}} |")
    return "".join(f"{row}\n" for row in rows)


def _visible(line: str) -> str:
    """The line with its columns, without control characters."""
    shown = "".join(character if character.isprintable() else " " for character in line.replace("\t", " "))
    return shown[:_WIDEST]
