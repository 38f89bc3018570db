"""Text from a case, made safe to print, and numbers, made easy to read.

Everything in a case comes from somebody's program: names, paths, source lines, error messages. Any of it may
hold terminal escapes, control characters, invisible or direction-changing characters, or be a megabyte long.
`clean` is the one gate. Views never hand case text to rich as markup: square brackets mean nothing special.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from rich.cells import cell_len

from flatout.model.case import Evidence, Where

LONGEST = 2000
"""No text from a case is ever longer than this on a terminal, whatever the view asks for."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC and other strings: titles, links
    r"|\x1b.|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILES = re.compile(f"({_MARK}{{2}}){_MARK}+")
"""More than two accents on one letter: they are drawn over the lines above."""


def clean(value: object, limit: int = LONGEST) -> str:
    """One line of harmless text: no escapes, controls, invisible characters or runs of blanks."""
    return elide(" ".join(clean_code(str(value)[: 4 * LONGEST]).split()), min(limit, LONGEST))


def clean_code(row: str) -> str:
    """A harmless line of source, with its blanks."""
    if not _PLAIN.fullmatch(row):
        row = _PILES.sub(r"\1", "".join(map(_harmless, _ESCAPES.sub("", row))))
    return row


@functools.lru_cache(maxsize=512)
def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r\v\f" or category in ("Zl", "Zp", "Zs"):
        return " "
    if category == "Cf":
        return ""  # invisible: direction overrides, zero-width joiners, tags
    return "�" if category.startswith("C") else character


def elide(text: str, width: int, middle: bool = False) -> str:
    """Shorten to `width` cells, in the middle for paths, whose end says most."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    if not middle:
        return _head(text, width - 1).rstrip() + "…"
    front = (width - 1) // 3
    return _head(text, front) + "…" + _head(text[::-1], width - 1 - front)[::-1]


def _head(text: str, width: int) -> str:
    used = 0
    for position, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:position]
    return text


def place(where: Where | None, width: int = 60, base: str = "") -> str:
    """file:line, never losing the line; the file as seen from the directory `base` if it lies in there."""
    if where is None or not where.file:
        return ""
    line = "" if where.line is None else f":{clean(where.line, 12)}"
    file = where.file
    if base and file.startswith(base.rstrip("/") + "/"):
        file = file[len(base.rstrip("/")) + 1 :]
    return elide(clean(file), max(8, width - len(line)), middle=True) + line


# ── numbers ──


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "–"
    size = abs(milliseconds)
    if size >= 600_000:
        return f"{milliseconds / 60_000:,.1f} min"
    if size >= 100_000:
        return f"{milliseconds / 1000:.0f} s"
    if size >= 1000:
        return f"{milliseconds / 1000:.{1 if size >= 10_000 else 2}f} s"
    if size >= 10:
        return f"{milliseconds:.1f} ms"
    if size >= 0.1:
        return f"{milliseconds:.2f} ms"
    return f"{milliseconds * 1000:.1f} µs" if size else "0 ms"


def share(value: float | None) -> str:
    if value is None:
        return "–"
    percent = 100 * value
    return f"{percent:.1f} %" if 0 < abs(percent) < 9.95 else f"{percent:.0f} %"


def size(count: float | None) -> str:
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def number(value: float | None) -> str:
    if value is None:
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


_UNITS: dict[str, Callable[[float], str]] = {
    "ms": duration,
    "s": lambda seconds: duration(1000 * seconds),
    "bytes": size,
    "share": share,
}


def quantity(value: Any, unit: str) -> str:
    """A value of evidence with its unit, as a person would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)) or value != value or abs(value) == float("inf"):
        return clean(f"{value} {unit}" if unit else value, 60)
    if unit in _UNITS:
        return _UNITS[unit](value)
    return f"{number(value)} {clean(unit, 30)}".rstrip()


def evidence_text(evidence: Evidence) -> str:
    kind = re.sub(r"[-_.]+", " ", clean(evidence.kind, 40))
    return kind if evidence.value is None else f"{kind} {quantity(evidence.value, evidence.unit)}"


# ── where Unicode is not to be had ──

GLYPHS = "█▓▒░▚┄▁▂▃▄▅▆▇→–…·×µ±≥≤─◀"
_ASCII = dict(zip(map(ord, GLYPHS), "#%+=x._.-=+*%>-~-xu+><-<", strict=True)) | {ord("’"): "'", 0xA0: " "}


def can_show(encoding: str | None) -> bool:
    try:
        GLYPHS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def to_ascii(text: str) -> str:
    """Cell for cell, so that columns stay where they are."""
    return "".join(c if c < "\x80" else "?" * cell_len(c) for c in text.translate(_ASCII))
