"""What `flatout bisect` has found, as text for a terminal."""

from __future__ import annotations

from flatout.compare.bisection import Bisection, Tried
from flatout.report.formatting import clean
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Column


def render(
    found: Bisection, width: int | None = None, color: bool | None = None, *, unicode: bool | None = None
) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    page.line((clean(found.verdict, 600), "bold"), indent=0)
    page.gap()
    page.labelled("program", clean(found.program, 200), indent=0, room=8)
    page.heading(
        "Tried", f"{len(found.tried)} of {found.environments - 2} between good and bad, each raced against good"
    )
    rows = [_row(one) for one in (found.whole, *found.tried)]
    page.table([Column("", flexible=True), Column("times as long"), Column("", flexible=True)], rows)
    return output.text(page)


def _row(one: Tried) -> list[str]:
    if one.times is None:
        return [clean(one.name, 120), "", clean(f"passed over: {one.note}", 200)]
    told = "" if one.slow is None else "slow" if one.slow else "as fast as before"
    doubt = "" if one.sure else ", not beyond doubt"
    return [clean(one.name, 120), f"{one.times.ratio:.2f} [{one.times.low:.2f}, {one.times.high:.2f}]", told + doubt]
