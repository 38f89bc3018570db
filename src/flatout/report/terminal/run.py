"""The run as one bar and a few lines: where its wall clock went."""

from __future__ import annotations

from rich.text import Text

from flatout.model.case import Case, RunPart, RunTree
from flatout.model.run_tree import GROUPS
from flatout.report.formatting import clean, duration, share
from flatout.report.terminal.charts import keyed
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import AMBER, BLUE, GREEN, GREY, MAGENTA, PLAIN, RED, TEAL

MOST_LINES = 8
LEAST = 0.01
"""Share of the run below which a part is not listed."""

COLOURS = {
    "start": ("░", PLAIN),
    "tracing": ("▓", MAGENTA),
    "steps": ("█", GREEN),
    "between epochs": ("▚", TEAL),
    "validation": ("▒", BLUE),
    "prediction": ("/", BLUE),
    "callbacks": ("o", RED),
    "checkpoints": ("^", RED),
    "summaries": ("~", RED),
    "program": (":", AMBER),
    "exit": ("·", GREY),
    "flatout": ("┄", GREY),
    "unattributed": ("?", GREY),
}
"""The groups of a run with their glyph and colour; each glyph once, so that they are told apart without colour."""


LEGEND = {"flatout": "flatout itself", "program": "other lines of the program"}
"""Groups whose names say too little beside the bar."""
NAMES = {"interpreter": "interpreter", "before": "the program", "prepare": "fit prepares", "steps": "", "observer": ""}
"""Of parts whose kind says it all."""


def write(case: Case, page: Page) -> None:
    """Nothing where the run was not watched as a whole."""
    run = case.run
    if run is None or run.seconds <= 0:
        return
    epochs = f", {run.epochs:,} epochs" if run.epochs > 1 else ""
    page.heading("Run", f"{duration(1000 * run.seconds)}{epochs}: where the wall clock went")
    page.line(bar(run, page.width - 4))
    rows = []
    for name, seconds in sorted(run.groups(), key=lambda item: -item[1])[:MOST_LINES]:
        if seconds >= LEAST * run.seconds:
            glyph, _ = COLOURS[name]
            rows.append([f"{glyph} {name}", duration(1000 * seconds), share(seconds / run.seconds), details(run, name)])
    page.table([Column(""), Column("", right=True), Column("", right=True), Column("", flexible=True)], rows)


def legend(run: RunTree, width: int) -> list[Text]:
    """The glyphs of a bar of this width with what they stand for, the largest first."""
    groups = sorted(run.groups(), key=lambda item: -item[1])
    seen = [item for item in groups if round(width * item[1] / run.seconds)]
    return [keyed(*COLOURS[name], f"{LEGEND.get(name, name)} {duration(1000 * seconds)}") for name, seconds in seen]


def bar(run: RunTree, width: int) -> Text:
    groups = dict(run.groups())
    if not groups:  # all its parts are of kinds that a later version has
        return Text("")
    cells = {name: round(width * seconds / run.seconds) for name, seconds in groups.items()}
    largest = max(cells, key=lambda name: cells[name])
    cells[largest] = max(cells[largest] + width - sum(cells.values()), 1)
    text = Text(no_wrap=True)
    for name, (glyph, colour) in COLOURS.items():
        text.append(glyph * cells.get(name, 0), style=colour)
    return text


def details(run: RunTree, group: str, most: int = 2) -> str:
    """The largest parts of a group, with their lines."""
    parts = [part for part in run.of(*GROUPS[group]) if part.seconds >= LEAST * run.seconds]
    return "; ".join(text for part in parts[:most] if (text := _part(part, len(parts) > 1)))


def _part(part: RunPart, timed: bool) -> str:
    if part.kind == "steps":
        return f"{part.count:,} steps"
    seconds = f" {duration(1000 * part.seconds)}" if timed else ""
    name = f"importing {part.name}" if part.kind == "import" else NAMES.get(part.kind, part.name)
    where = part.where
    if where is None and part.lines():
        where = part.lines()[0].where
    times = f" {part.count:,} times" if part.count > 1 else ""
    spot = f" at {where.file.rpartition('/')[2]}:{where.line}" if where is not None and where.file else ""
    return clean(f"{name}{seconds}{times}{spot}".strip())
