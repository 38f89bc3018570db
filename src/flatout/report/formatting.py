"""Text and numbers as the views show them: shortened to a width, with units.

Text from a case passes through `clean`, and views never hand it to rich as markup: square brackets have no meaning in
it.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from rich.cells import cell_len

from flatout.model import text as safe_text
from flatout.model.case import Evidence, Where
from flatout.model.text import LONGEST
from flatout.source.notebooks.program import by_cells

MOST_UPS = 2
"""A file is named from another directory by this many `..` at most."""


def clean(value: object, limit: int = LONGEST) -> str:
    """Safe text in one line, at most `limit` cells of a terminal wide."""
    return elide(safe_text.clean(value), min(limit, LONGEST))


def sentence(value: object, limit: int = LONGEST) -> str:
    """The same for a sentence that flatout wrote: `79%` becomes `79 %`, as `share` writes it."""
    return elide(re.sub(r"(?<=\d)%(?![\w(])", " %", safe_text.clean(value)), min(limit, LONGEST))


def elide(text: str, width: int, middle: bool = False) -> str:
    """Shorten to `width` cells: at the end, or in the middle for paths, whose end says most."""
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


def location(where: Where | None, width: int = 60, base: str = "") -> str:
    """`file:line`, shortened without losing the line; relative to the directory `base` if the file is in or near it."""
    if where is None or not where.file:
        return ""
    line = "" if where.line is None else f":{clean(where.line, 12)}"
    file = _near(where.file, base) if base else where.file
    named = by_cells(f"{clean(file)}{line}")
    if named != f"{clean(file)}{line}":  # of a notebook; shortened, its program would not be recognised
        name, cell, place = named.rpartition(" cell ")
        return elide(name, max(8, width - len(cell + place)), middle=True) + cell + place if cell else named
    return elide(clean(file), max(8, width - len(line)), middle=True) + line


def _near(file: str, base: str) -> str:
    """Relative, if the file is in the directory or a neighbour of it."""
    base = base.rstrip("/")
    if file.startswith(base + "/"):
        return file[len(base) + 1 :]
    if not (file.startswith("/") and base.startswith("/")):
        return file
    relative = posixpath.relpath(file, base)
    ups = relative.split("/").count("..")
    return relative if ups <= MOST_UPS and base.count("/") - ups >= 2 else file


def duration(milliseconds: float | None) -> str:
    if milliseconds is None or not math.isfinite(milliseconds):
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
    if value is None or not math.isfinite(value):
        return "–"
    percent = 100 * value
    if abs(percent) < 0.05:
        percent = abs(percent)  # no `−0.0 %`
    return f"{percent:.1f} %" if 0 < abs(percent) < 9.95 else f"{percent:.0f} %"


def shares(values: Mapping[str, float]) -> dict[str, str]:
    """What each is of their sum, in whole percents that add up to 100; `<1 %` for what is less."""
    total = sum(values.values())
    if total <= 0:
        return {}
    exact = {name: 100 * value / total for name, value in values.items() if value > 0}
    whole = {name: int(part) for name, part in exact.items()}
    for name in sorted(exact, key=lambda name: whole[name] - exact[name])[: 100 - sum(whole.values())]:
        whole[name] += 1
    return {name: f"{part} %" if part else "<1 %" for name, part in whole.items()}


def size(count: float | None) -> str:
    if count is None or not math.isfinite(count):
        return "–"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
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
    """A value of evidence with its unit."""
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
