"""The audit as a table for the terminal.

A reading that is in order is one line. Any other is followed by what it means and what to do. Text from outside goes
through `rich.text.Text`, which reads no markup in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from flatout.environment.reading import GROUPS, gibibytes, number, part
from flatout.model.case import Case
from flatout.model.evidence.outcomes import EnvironmentReading
from flatout.model.text import clean

_MARKS = {"ok": ("✓", ""), "info": ("·", ""), "warning": ("!", "bold"), "fault": ("✗", "bold")}
_PLAIN_MARKS = {"ok": "+", "info": ".", "warning": "!", "fault": "x"}
_TITLES = {"machine": "Machine", "tensorflow": "TensorFlow", "gpu": "GPU", "settings": "Settings"}
_WIDEST = 120
_LONGEST_NAME = 26


def show(case: Case, console: Console, quiet: bool = False) -> None:
    """Print the audit. `quiet` shows problems only."""
    found = case.evidence_of(EnvironmentReading)
    readings = [item for item in found if not quiet or _status(item) in ("warning", "fault")]
    names = [len(item.name) for item in readings]
    indent = min(max(names, default=0), _LONGEST_NAME) + 4
    if not quiet:
        _lines(console, Text(headline(case.environment), style="bold"), 0)
    for group in GROUPS:
        rows = [item for item in readings if item.group == group]
        if rows:
            console.print()
            console.print(Text(_TITLES[group], style="bold"))
            for item in rows:
                _row(console, item, indent)
    if not quiet or readings:
        console.print()
        for note in case.notes:
            _lines(console, Text(f"{note.text} {note.todo}".strip()), 0)
        _lines(console, Text(case.verdict, style="bold"), 0)


def headline(facts: Mapping[str, Any]) -> str:
    """The machine in one line."""
    versions = part(part(facts, "packages"), "versions")
    tensorflow = part(facts, "tensorflow").get("version") or next(
        (version for name, version in versions.items() if name.startswith(("tensorflow", "tf-nightly"))), None
    )
    cores, total = number(part(facts, "cores").get("machine")), number(part(facts, "memory").get("total"))
    words = (
        f"TensorFlow {tensorflow}" if tensorflow else "no TensorFlow",
        f"Python {part(facts, 'system').get('python', '?')}",
        re.sub(r"\((R|TM)\)| (CPU|Processor)\b", "", str(part(facts, "cpu").get("model") or "")),
        f"{cores:.0f} core{'' if cores == 1 else 's'}" if cores else "",
        gibibytes(total) if total else "",
    )
    return clean(" · ".join(word for word in words if word), 200)


def _row(console: Console, item: EnvironmentReading, indent: int) -> None:
    mark, style = _MARKS[_status(item)]
    plain = not console.encoding.lower().startswith("utf")
    first = Text(" ").append(_PLAIN_MARKS[_status(item)] if plain else mark, style=style)
    first.append(" " + item.name)
    pieces = list(_words(item, plain))
    if len(first) < indent:
        first.pad_right(indent - len(first))
        _lines(console, pieces.pop(0), indent, first)
    else:
        console.print(first)
    for piece in pieces:
        _lines(console, piece, indent)


def _words(item: EnvironmentReading, plain: bool) -> Iterator[Text]:
    in_order = _status(item) == "ok"
    yield Text(item.reading, style="" if in_order else _MARKS[_status(item)][1])
    if in_order:
        return
    if item.note:
        yield Text(item.note)
    if item.todo:
        yield Text(("-> " if plain else "→ ") + item.todo, style="bold")


def _lines(console: Console, text: Text, indent: int, before: Text | None = None) -> None:
    """Print a wrapped text with an indent, without trailing blanks."""
    width = max(20, min(console.width, _WIDEST) - indent)
    for line in text.wrap(console, width):
        line.rstrip()
        console.print(Text.assemble(before or " " * indent, line), soft_wrap=True)
        before = None


def _status(item: EnvironmentReading) -> str:
    return item.status if item.status in _MARKS else "info"
