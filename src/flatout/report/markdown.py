"""A comparison as Markdown, for a pull request. Text from a case is escaped: it is somebody's, and it is no markup."""

from __future__ import annotations

import html
import re

from flatout.compare import words
from flatout.compare.comparison import Comparison
from flatout.report.terminal.text import clean

MARKS = {"slower": "🔴", "faster": "🟢", "same": "⚪", "unknown": "❔"}
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!])")
_LIVE = re.compile(r"([@#]|://|www\.)(?=\S)")
"""What GitHub turns into links and mentions by itself; a comment inside breaks it."""


def render(found: Comparison, title: str = "") -> str:
    mark = MARKS[found.outcome]
    lines = [f"### {mark} {escape(title or found.after[0].title)}", "", escape(found.verdict), ""]
    lines += ["| | before | after | change | |", "|---|---:|---:|---|---|"]
    for row in (found.step, *found.parts):
        name, before, after, told, outcome = map(escape, words.part_row(row))
        name = f"**{name}**" if row is found.step else name
        lines.append(f"| {name} | {before} | {after} | {told} | {outcome} |")
    lines += ["", *_differences(found), "", f"<sub>{escape(words.sureness(found.spread, 3))}</sub>", ""]
    return "\n".join(lines)


def _differences(found: Comparison) -> list[str]:
    rows = [*found.program, *found.environment]
    if not rows:
        return ["Same program, same machine, same libraries, as far as is written down."]
    lines = ["| what differs | before | after |", "|---|---|---|"]
    lines += [f"| {escape(one.what)} | {escape(one.before)} | {escape(one.after)} |" for one in rows]
    if not found.same_machine:
        lines += ["", "⚠️ These are different machines: the change is not the program's alone."]
    if not found.same_program:
        lines += ["", "⚠️ These are different programs or arguments: the change is not one of speed alone."]
    return lines


def escape(text: object) -> str:
    """Plain text in Markdown: no markup, no HTML, no mention of people, no end of a table's cell."""
    return _LIVE.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", html.escape(clean(text, 400), quote=False)))
