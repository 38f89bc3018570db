"""The page of a cause as HTML: headings, paragraphs, lists and code, which is all that these pages use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatout.report.html.markup import Child, Html, tag, verbatim

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")


def page(text: str) -> Html:
    return tag("div", list(_blocks(text.splitlines())), class_="prose")


def inline(text: str) -> list[Child]:
    """`code` and **strong** inside a sentence."""
    found: list[Child] = []
    position = 0
    for match in _INLINE.finditer(text):
        found.append(text[position : match.start()])
        found.append(tag("code", match[1]) if match[1] else tag("strong", match[2]))
        position = match.end()
    return [*found, text[position:]]


def _blocks(lines: list[str]) -> Iterator[Html]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if line.startswith("```"):
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            yield tag("pre", tag("code", verbatim("\n".join(lines[at + 1 : end]))), tabindex="0")
            end += 1
        elif line.startswith("#"):
            yield tag("h5", line.lstrip("# "))
        elif line.startswith("- "):
            end = _end(lines, end)
            yield tag("ul", [tag("li", inline(item)) for item in _items(lines[at:end])])
        elif line.strip():
            end = _end(lines, end)
            yield tag("p", inline(" ".join(part.strip() for part in lines[at:end])))
        at = end


def _end(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].strip() and not lines[at].startswith(("#", "```")):
        at += 1
    return at


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if line.startswith("- ") or not items:
            items.append(line.removeprefix("- ").strip())
        else:
            items[-1] += f" {line.strip()}"
    return items
