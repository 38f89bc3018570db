"""A comparison as Markdown, for a pull request. Text from a case is escaped, as it comes from outside."""

from __future__ import annotations

import html
import re

from flatout.compare import formatting
from flatout.compare.comparison import Comparison
from flatout.report.formatting import clean

MARKS = {"slower": "🔴", "faster": "🟢", "same": "⚪", "unknown": "❔"}
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!])")
_LIVE = re.compile(r"([@#]|://|www\.)(?=\S)")
"""What GitHub turns into links and mentions; an HTML comment inside prevents that."""


def render(found: Comparison, title: str = "") -> str:
    mark = MARKS[found.outcome]
    lines = [f"### {mark} {escape(title or found.after[0].title)}", "", escape(found.verdict), ""]
    lines += ["| | before | after | change | |", "|---|---:|---:|---|---|"]
    for row in (found.step, *found.parts, *found.run):
        name, before, after, change, outcome = map(escape, formatting.change_row(row))
        name = f"**{name}**" if row is found.step else name
        lines.append(f"| {name} | {before} | {after} | {change} | {outcome} |")
    lines += ["", *_differences(found), "", f"<sub>{escape(formatting.interval_note(found.spread, 3))}</sub>", ""]
    return "\n".join(lines)


def _differences(found: Comparison) -> list[str]:
    rows = [*found.program, *found.environment]
    if not rows:
        return ["Same program, same machine, same libraries, as far as recorded."]
    lines = ["| what differs | before | after |", "|---|---|---|"]
    lines += [f"| {escape(one.what)} | {escape(one.before)} | {escape(one.after)} |" for one in rows]
    if not found.same_machine:
        lines += ["", f"⚠️ {formatting.OTHER_MACHINE}"]
    if not found.same_program:
        lines += ["", f"⚠️ {formatting.OTHER_PROGRAM}"]
    return lines


def escape(text: object) -> str:
    """Plain text in Markdown: no markup, no HTML, no mentions of users, no end of a table cell."""
    return _LIVE.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", html.escape(clean(text, 400), quote=False)))
