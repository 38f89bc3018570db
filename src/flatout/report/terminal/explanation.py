"""The catalogues in the terminal: a list by group, and the page of one entry.

The pages use a small part of Markdown: headings, paragraphs, lists and code. rich's own Markdown would load a
parser and a highlighter for it and cut long lines of code anywhere; this prints the text nearly as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Page

_INLINE = re.compile(r"(`[^`]+`)|\*\*([^*]+)\*\*")


@dataclass(frozen=True)
class Entry:
    """A cause, cure, route or check with its page."""

    name: str
    group: str
    title: str
    page: str
    levers: tuple[str, ...] | None = None
    """Cures that may help; None for anything but a cause."""


def index(causes: list[Entry], width: int | None = None, color: bool | None = None, unicode: bool | None = None) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    page.line(f"{len(causes)} causes of slowness. `flatout explain NAME` shows the page of one.", indent=0)
    room = max(len(cause.name) for cause in causes) + 2
    for group, members in groupby(causes, key=lambda cause: cause.group):
        page.heading(group)
        for cause in members:
            page.labelled(cause.name, cause.title, indent=2, room=room, style="bold")
    return output.text(page)


def page(entry: Entry, width: int | None = None, color: bool | None = None, unicode: bool | None = None) -> str:
    output = Output.of(width, color, unicode)
    sheet = output.page()
    sheet.line((entry.name, "bold"), f"   {entry.group}", indent=0)
    sheet.line(f"{entry.title}.", indent=0)
    for block in _blocks(entry.page):
        _write(block, sheet)
    sheet.gap()
    if entry.levers is not None:
        levers = ", ".join(entry.levers) or "none: the cure is an edit of the source or of the installation"
        sheet.labelled("levers", levers, indent=0, room=8)
    return output.text(sheet)


def _blocks(text: str) -> list[list[str]]:
    """Lines that belong together: a heading, a paragraph, a list item, a piece of code with its fences."""
    blocks: list[list[str]] = []
    in_code = False
    for line in text.splitlines():
        fence = line.startswith("```")
        fresh = not blocks or not blocks[-1]
        if in_code:
            blocks[-1].append(line)
        elif not line.strip():
            blocks.append([])
        elif fence or line.startswith(("#", "- ")) or fresh or _kind(line) != _kind(blocks[-1][0]):
            blocks.append([line])
        else:
            blocks[-1].append(line)
        if fence:
            in_code = not in_code
            if not in_code:
                blocks.append([])
    return [block for block in blocks if block]


def _kind(line: str) -> str:
    return "code" if line.startswith("```") else "heading" if line.startswith("#") else "text"


def _write(block: list[str], sheet: Page) -> None:
    first = block[0]
    if first.startswith("#"):
        sheet.heading(first.lstrip("# "))
    elif first.startswith("```"):
        sheet.gap()
        for line in block[1:-1]:
            for part in fitted(line, sheet.width - 4):
                sheet.code(part)
        sheet.gap()
    else:
        text = " ".join(line.strip() for line in block)
        if text.startswith("- "):
            sheet.labelled("-", _inline(text[2:]), indent=2, room=2)
        else:
            sheet.line(_inline(text))


def fitted(line: str, width: int) -> list[str]:
    """A line of code. If it is too long, its comment moves closer, and then to a line above."""
    code, mark, comment = line.rpartition("  # ")
    if len(line) <= width or not mark:
        return [line]
    code = code.rstrip()
    if len(f"{code}  # {comment}") <= width:
        return [f"{code}  # {comment}"]
    indent = " " * (len(code) - len(code.lstrip()))
    return [f"{indent}# {comment}", code]


def _inline(text: str) -> Text:
    result = Text()
    position = 0
    for match in _INLINE.finditer(text):
        result.append(text[position : match.start()])
        strong = match.group(2)
        # The backticks stay: without colour nothing else marks code.
        result.append(strong or match.group(), style="bold" if strong else "")
        position = match.end()
    return result.append(text[position:])
