"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare import formatting
from flatout.compare.comparison import Comparison
from flatout.compare.differences import Difference
from flatout.report.formatting import clean, share
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Column, Page
from flatout.store.run_summary import Run

BUSY = 0.05
"""Load by other programs is mentioned from this share of the cores on."""


def render(
    found: Comparison, width: int | None = None, color: bool | None = None, *, unicode: bool | None = None
) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    page.line((clean(found.verdict), "bold"), indent=0)
    page.gap()
    _side("before", found.before, page)
    _side("after", found.after, page)
    page.heading("Step", "median, and the parts of it from the traced steps")
    page.table(
        [Column(""), Column("before", right=True), Column("after", right=True), Column("change"), Column("", drop=1)],
        [formatting.change_row(one) for one in (found.step, *found.parts)],
    )
    if not found.parts:
        page.line("There are no parts: one side was run without a trace.")
    if found.run:
        page.heading("Run", "from its start to its end")
        page.table(
            [
                Column(""),
                Column("before", right=True),
                Column("after", right=True),
                Column("change"),
                Column("", drop=1),
            ],
            [formatting.change_row(one) for one in found.run],
        )
    _differences(found, page)
    page.gap()
    page.line(formatting.interval_note(found.spread, len(found.before) + len(found.after)), indent=0)
    return output.text(page)


def _side(label: str, runs: Sequence[Run], page: Page) -> None:
    first = runs[0]
    facts = [clean(formatting.side_name(runs)), clean(first.title, 120), clean(formatting.source_state(first))]
    facts.append(f"{sum(run.steps for run in runs):,} steps")
    page.labelled(label, "  ·  ".join(filter(None, facts)), indent=0, room=8)


def _differences(found: Comparison, page: Page) -> None:
    same = "the same program" if found.same_program else "not the same program"
    page.heading("What differs", same if found.program else "the same program, and the same source as far as recorded")
    rows = [*found.program, *found.environment]
    if rows:
        page.table(
            [Column("", flexible=True), Column("before", flexible=True), Column("after", flexible=True), Column("of")],
            [_row(one) for one in rows],
        )
    else:
        page.line(formatting.NO_DIFFERENCES)
    if not found.same_machine:
        page.line(formatting.OTHER_MACHINE)
    if not found.same_program:
        page.line(formatting.OTHER_PROGRAM)
    for run in (*found.before, *found.after):
        if (run.others or 0.0) >= BUSY:
            text = f"{clean(run.name)}: other programs used {share(run.others)} of the cores"
            page.line(f"{text}, which widens the interval.")
        if run.failed:
            page.line(f"{clean(run.name)} failed: {clean(run.failed, 200)}")


def _row(one: Difference) -> list[str]:
    level = "program" if one.level in ("other", "changed") else one.level
    return [clean(one.what), clean(one.before), clean(one.after), level]
