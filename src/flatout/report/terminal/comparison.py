"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare import words
from flatout.compare.comparison import Comparison
from flatout.compare.sameness import Difference
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.text import clean, share
from flatout.store.run import Run

BUSY = 0.05
"""Share of the cores that something else had, from which it is told."""


def render(
    found: Comparison, width: int | None = None, color: bool | None = None, *, unicode: bool | None = None
) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    style = {"slower": "bold red", "faster": "bold green"}.get(found.outcome, "bold")
    page.line((clean(found.verdict), style), indent=0)
    page.gap()
    _side("before", found.before, page)
    _side("after", found.after, page)
    page.heading("Step", "median, and the parts of it from the traced steps")
    page.table(
        [Column(""), Column("before", right=True), Column("after", right=True), Column("change"), Column("", drop=1)],
        [words.part_row(one) for one in (found.step, *found.parts)],
    )
    if not found.parts:
        page.line(("The parts are missing: a side was run without a trace.", "dim"))
    _differences(found, page)
    page.gap()
    page.line((words.sureness(found.spread, len(found.before) + len(found.after)), "dim"), indent=0)
    return output.text(page)


def _side(label: str, runs: Sequence[Run], page: Page) -> None:
    first = runs[0]
    told = [clean(words.side(runs)), clean(first.title, 120), clean(words.state(first))]
    told.append(f"{sum(run.steps for run in runs):,} steps")
    page.labelled(label, "  ·  ".join(filter(None, told)), indent=0, room=8)


def _differences(found: Comparison, page: Page) -> None:
    same = "the same program" if found.same_program else "not the same program"
    page.heading("What differs", same if found.program else "the same program, the same source as far as is known")
    rows = [*found.program, *found.environment]
    if rows:
        page.table(
            [Column("", flexible=True), Column("before", flexible=True), Column("after", flexible=True), Column("of")],
            [_row(one) for one in rows],
        )
    else:
        page.line("Nothing in the program, the machine, the libraries or the settings that is written down.")
    if not found.same_machine:
        page.line(("These are different machines: the change is not the program's alone.", "yellow"))
    if not found.same_program:
        page.line(("These are different programs or arguments: the change is not one of speed alone.", "yellow"))
    for run in (*found.before, *found.after):
        if (run.others or 0.0) >= BUSY:
            text = f"{clean(run.name)}: something else used {share(run.others)} of the cores meanwhile"
            page.line((f"{text}; the interval is wider for it.", "yellow"))
        if run.failed:
            page.line((f"{clean(run.name)} did not end well: {clean(run.failed, 200)}", "yellow"))


def _row(one: Difference) -> list[str]:
    level = "program" if one.level in ("other", "changed") else one.level
    return [clean(one.what), clean(one.before), clean(one.after), level]
