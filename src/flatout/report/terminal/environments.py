"""The comparison of two environments as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare import formatting
from flatout.compare.change import Change
from flatout.compare.differences import Difference
from flatout.compare.environments import EnvironmentComparison
from flatout.report.formatting import clean
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Column, Page

MOST_PACKAGES = 12
SEVERAL = 1.0
"""From this growth on a change is told as a ratio."""


def render(
    found: EnvironmentComparison, width: int | None = None, color: bool | None = None, *, unicode: bool | None = None
) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    page.line((clean(found.verdict, 400), "bold"), indent=0)
    page.gap()
    page.labelled("program", clean(found.program, 200), indent=0, room=8)
    page.labelled("before", clean(found.before, 200), indent=0, room=8)
    page.labelled("after", clean(found.after, 200), indent=0, room=8)
    _times(page, "Measured", _how(found), [found.step, *([found.whole] if found.whole else [])])
    _times(page, "The run before its steps", "from the observed runs", found.phases)
    _times(page, "Parts of the step", "from the traced steps of the observed runs", found.parts)
    _times(page, "Ops that differ", "by type, milliseconds of a step, summed over the threads", found.ops)
    _times(page, "Layers that differ", "by name, forward and backward; layers of one name together", found.layers)
    _rows(page, "Traces", found.traces)
    _rows(page, "Flags and settings", found.settings)
    _rows(page, "Causes found on one side", found.findings)
    _rows(page, "Packages", found.packages[:MOST_PACKAGES], len(found.packages) - MOST_PACKAGES)
    for note in found.notes:
        page.line(clean(note, 300))
    return output.text(page)


def _how(found: EnvironmentComparison) -> str:
    rounds = f"{found.rounds} paired rounds" if found.rounds else "no rounds"
    return f"{rounds}, in processes started anew {found.groups} times; intervals of 95 %"


def _times(page: Page, title: str, about: str, rows: Sequence[Change]) -> None:
    if not rows:
        return
    page.heading(title, about)
    columns = [Column("", flexible=True), Column("before", right=True), Column("after", right=True)]
    page.table([*columns, Column("change"), Column("", drop=1)], [_change(one) for one in rows])


def _change(one: Change) -> list[str]:
    name, before, after, text, outcome = formatting.change_row(one)
    if one.share is not None and one.outcome in ("slower", "faster") and abs(one.share.ratio) > SEVERAL:
        text = f"{1 + one.share.ratio:.2f} × [{max(1 + one.share.low, 0):.2f}, {1 + one.share.high:.2f}]"
    if one.outcome == "unknown":
        outcome = "not known: the machine was busy" if one.before_ms > 0 and one.share is None else outcome
    return [clean(name), before, after, text, outcome]


def _rows(page: Page, title: str, rows: Sequence[Difference], more: int = 0) -> None:
    if not rows:
        return
    page.heading(title)
    columns = [Column("", flexible=True), Column("before", flexible=True), Column("after", flexible=True)]
    page.table(columns, [[clean(one.what), clean(one.before), clean(one.after)] for one in rows])
    if more > 0:
        page.line(f"and {more} more; --json has all of them")
