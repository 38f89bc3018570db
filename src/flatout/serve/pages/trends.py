"""The trend of every program: the median step at each state of its source, drawn with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare import formatting
from flatout.history.series import Series
from flatout.history.trend import Point, points
from flatout.report.formatting import duration
from flatout.report.html.components import chip
from flatout.report.html.markup import Html, tag
from flatout.serve.pages.case_list import when
from flatout.serve.pages.layout import page

LAST = 40
MOST = 30
KINDS = {"slower": "lost", "faster": "won"}


def write(all_series: Sequence[Series]) -> str:
    shown = sorted(all_series, key=lambda one: -one.recorded)[:MOST]
    return page(
        "Trends",
        tag("section", tag("h1", "Trends", class_="verdict"),
            tag("p", "The median step of each program, by the state of its source, the newest last.", class_="lead")),
        [_series(one) for one in shown] if shown else tag("p", "The history has no runs yet."),
        here="/trends",
    )  # fmt: skip


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _series(series: Series) -> Html:
    found = points(series, LAST)
    about = f"{_many(series.count, 'run')} of {_many(len(series.states), 'state')}"
    low, high = min(point.ms.low for point in found), max(point.ms.high for point in found)
    return tag(
        "section",
        tag("h2", series.title),
        tag("p", " · ".join(filter(None, (about, series.machine))), class_="lead"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", [
                    tag("th", "state", scope="col"), tag("th", "when", scope="col", class_="minor"),
                    tag("th", "runs", scope="col", class_="number minor"),
                    tag("th", "step", scope="col", class_="number"),
                    tag("th", tag("div", tag("span", duration(low), class_="tick first"),
                                  tag("span", duration(high), class_="tick last"), class_="axis"),
                        scope="col", class_="plot"),
                    tag("th", "since the state before", scope="col", class_="since")])),
                tag("tbody", [_row(point, low, high) for point in found]),
                class_="forest trend",
            ),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=f"Trend of {series.title}",
        ),
    )  # fmt: skip


def _row(point: Point, low: float, high: float) -> Html:
    run, since = point.state.run, point.since.step if point.since is not None else None
    begin, middle, end = (
        100 * (value - low) / ((high - low) or 1.0) for value in (point.ms.low, point.ms.ratio, point.ms.high)
    )
    kind = KINDS.get(since.outcome, "") if since else ""
    change = formatting.change(since.share) if since and since.share else ""
    return tag(
        "tr",
        tag("th", tag("a", formatting.source_state(run) or run.name, href=f"/case/{run.name}"), scope="row"),
        tag("td", when(point.state.recorded), class_="minor"),
        tag("td", str(len(point.state.entries)), class_="number minor"),
        tag("td", tag("b", duration(point.ms.ratio)), class_="number"),
        tag(
            "td",
            tag(
                "div",
                tag("span", class_=f"whisker {kind}", style=f"left:{begin:.2f}%;width:{max(0.4, end - begin):.2f}%"),
                tag("span", class_=f"dot {kind}", style=f"left:{middle:.2f}%"),
                class_="track",
                aria_hidden="true",
            ),
            class_="plot",
        ),
        tag("td", change, chip(since.outcome, f"status {kind}") if since and kind else None, class_="since"),
    )
