"""Charts made of characters: a stacked bar, a sparkline, an area.

Each part of a bar has its own glyph, so that it can be read without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rich.text import Text

from flatout.report.terminal.palette import AMBER, GREY, MAGENTA, PLAIN, RED, TEAL

LEVELS = "▁▂▃▄▅▆▇█"

PARTS = (
    ("input", "█", AMBER),
    ("trace", "▓", MAGENTA),
    ("python", "▒", RED),
    ("compute", "░", PLAIN),
    ("copy", "▚", TEAL),
    ("idle", "┄", GREY),
)
"""The parts of a step with their glyph and colour."""


def stacked(values: dict[str, float], width: int) -> Text:
    """One bar of `width` cells. A part that is not zero gets at least one cell."""
    total = sum(value for value in values.values() if value > 0)
    if total <= 0:
        return Text("")
    cells = {name: max(1, round(width * value / total)) for name, value in values.items() if value > 0}
    largest = max(cells, key=lambda name: cells[name])
    cells[largest] = max(1, cells[largest] + width - sum(cells.values()))
    bar = Text(no_wrap=True)
    for name, glyph, colour in PARTS:
        bar.append(glyph * cells.get(name, 0), style=colour)
    return bar


def keyed(glyph: str, colour: str, text: str) -> Text:
    """A line of a legend: the glyph as it is in the bar, and what it stands for."""
    return Text.assemble((glyph, colour), f" {text}")


def bar(value: float, largest: float, width: int) -> str:
    if largest <= 0 or value <= 0:
        return ""
    return "█" * max(1, round(width * min(1.0, value / largest)))


def buckets(values: Sequence[float], width: int) -> list[Sequence[float]]:
    """The values in order, in at most `width` groups of nearly equal size."""
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)] if count else []
    return [values[a:b] for a, b in pairwise(edges) if b > a]


def spark(values: Sequence[float], low: float, high: float) -> str:
    """One character per value. Values outside of low–high are clipped, so that an outlier does not flatten the rest."""
    span = high - low
    if span <= 0:
        return LEVELS[0] * len(values)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round(top * min(1.0, max(0.0, (value - low) / span)))] for value in values)


def typical_spark(values: Sequence[float], width: int) -> tuple[str, float, float]:
    """A sparkline of the medians of the groups, and its scale: 0.9 of the least to the greatest median."""
    medians = [median(group) for group in buckets(values, width)]
    low, high = 0.9 * min(medians), max(max(medians), 1.1 * min(medians))
    return spark(medians, low, high), low, high


def area(values: Sequence[float], height: int, top: float) -> list[str]:
    """Rows of a filled curve, from top to bottom."""
    rows = []
    for row in range(height, 0, -1):
        line = ""
        for value in values:
            eighths = round(8 * height * value / top) - 8 * (row - 1) if top > 0 else 0
            line += " " if eighths <= 0 else LEVELS[min(8, eighths) - 1]
        rows.append(line)
    return rows
