"""The events of the trace window on a canvas with zoom, pan and search, and what takes most time as a table."""

from __future__ import annotations

from flatout.report.formatting import duration
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, block, data, join, tag
from flatout.report.html.tables import Cell, Column, Row, table

TITLE = "Timeline"
KEYS = "← → move · + − zoom · n p next and previous event · ↑ ↓ rows · Home all · Ctrl and wheel zooms, drag moves"


def has_data(context: ReportContext) -> bool:
    return context.timeline is not None


def write(context: ReportContext) -> Html:
    timeline = context.timeline
    assert timeline is not None
    shown = f"{timeline.count:,} events on {len(timeline.head['lanes']):,} threads and streams"
    left = f", the longest of {timeline.total:,}" if timeline.total > timeline.count else ""
    return join(
        tag("p", f"{shown}{left}. Paler bars hold many short events with gaps between them.", class_="lead"),
        tag(
            "div",
            tag(
                "div",
                tag("input", type="search", class_="find", placeholder="Search events", aria_label="Search events"),
                tag("span", class_="found quiet", aria_live="polite"),
                tag(
                    "span",
                    [
                        tag("button", sign, type="button", data_do=name, aria_label=words, title=words)
                        for sign, name, words in (
                            ("−", "out", "Zoom out"),
                            ("+", "in", "Zoom in"),
                            ("‹", "left", "Move left"),
                            ("›", "right", "Move right"),
                            ("All", "all", "Show the whole window"),
                        )
                    ],
                    class_="buttons",
                ),
                class_="tools",
            ),
            tag("canvas", class_="overview", aria_hidden="true"),
            tag(
                "div",
                tag("div", tag("canvas"), class_="stage"),
                class_="lanes",
                tabindex="0",
                role="application",
                aria_label=f"Timeline: {shown}. {KEYS}",
            ),
            tag("div", class_="tip", hidden=True),
            tag("p", "Select an event to see its details.", class_="selected", role="status"),
            tag("p", KEYS, class_="quiet keys"),
            data(timeline.head),
            block("application/gzip;base64", timeline.columns),
            class_="timeline",
        ),
        _longest(context),
    )


def _longest(context: ReportContext) -> Html:
    timeline = context.timeline
    assert timeline is not None
    rows: list[Row] = [
        [name, Cell(f"{count:,}", count), Cell(duration(total), total), Cell(duration(total / count), total / count),
         Cell(duration(greatest), greatest)]
        for name, count, total, greatest in timeline.longest
    ]  # fmt: skip
    columns = [Column("event", wide=True), Column("count", True), Column("total", True),
               Column("mean", True, minor=True), Column("longest", True, minor=True)]  # fmt: skip
    return table(columns, rows, "What takes most time; events include the events nested in them", find="names")
