"""The trend of each program over the states of its source, as a table with drawn intervals and as JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flatout.compare import formatting, run_spread
from flatout.compare.comparison import CONFIDENCE, Comparison, compare
from flatout.history.series import Series, State
from flatout.model.case import Interval, to_plain
from flatout.report.formatting import clean, duration
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import TEAL
from flatout.report.terminal.screen import several

PLOT = 26
"""Width of the drawn interval in characters."""
RECENT = 100
"""States that are used unless more are requested."""


@dataclass(frozen=True)
class Point:
    state: State
    ms: Interval
    """The state's median step, with its interval."""
    since: Comparison | None
    """Compared with the state before."""


def points(series: Series, last: int = RECENT) -> list[Point]:
    """The last states with their intervals. The noise is estimated from the repeats of all states."""
    states = series.states[-max(last + 1, RECENT) :]
    groups = [state.runs for state in states]
    found: list[Point] = []
    for number in range(max(0, len(states) - last), len(states)):
        state = states[number]
        since = compare(groups[number - 1], state.runs, repeats=_others(groups, number)) if number else None
        own = compare(state.runs, state.runs, repeats=[group for group in groups if group is not state.runs])
        half = (
            run_spread.student_quantile(CONFIDENCE, own.spread.freedom) * own.spread.share / math.sqrt(len(state.runs))
        )
        middle = own.step.before_ms
        found.append(Point(state, Interval(middle, middle * math.exp(-half), middle * math.exp(half)), since))
    return found


def to_json(all_series: Sequence[Series]) -> dict[str, Any]:
    return {"kind": "history", "schema": 1, "series": [_series_json(series) for series in all_series]}


def render(
    all_series: Sequence[Series],
    last: int,
    width: int | None = None,
    color: bool | None = None,
    *,
    unicode: bool | None = None,
) -> str:
    output = Output.of(width, color, unicode)
    page = output.page()
    for series in all_series:
        _write(series, last, page)
    return output.text(page)


def verdict(series: Series) -> str:
    """`train.py: 20.1 ms a step at main a1b2c3d, +0.5 % [−1.2 %, +2.2 %] since the state before.`

    Of what ran last, which need not be the last state.
    """
    in_time = sorted(series.states, key=lambda state: state.recorded)
    (point,) = points(replace(series, states=tuple(in_time)), 1)
    state = clean(formatting.source_state(point.state.run) or point.state.run.name, 80)
    since = _since(point.since).replace("  ", " ")
    return f"{clean(series.title, 120)}: {duration(point.ms.ratio)} a step at {state}" + (
        f", {since} since the state before." if since else "."
    )


def _write(series: Series, last: int, page: Page) -> None:
    found = points(series, last)
    counts = f"{several(series.count, 'run')} of {several(len(series.states), 'state')}"
    page.heading(clean(series.title, 120), "  ·  ".join(filter(None, (counts, clean(series.machine, 80)))))
    low, high = min(point.ms.low for point in found), max(point.ms.high for point in found)
    scale = f"{duration(low)} ┄ {duration(high)}"
    page.table(
        [
            Column("state"),
            Column("when"),
            Column("runs", right=True, drop=2),
            Column("step", right=True),
            Column("run", right=True, drop=2),
            Column("to 1st step", right=True, drop=3),
            Column("outside", right=True, drop=3),
            Column(scale if len(scale) <= PLOT else "", drop=3, style=TEAL),
            Column("since the state before"),
        ],
        [
            [
                clean(formatting.source_state(point.state.run) or point.state.run.name, 28),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(point.state.recorded)),
                str(len(point.state.entries)),
                duration(point.ms.ratio),
                *(_of_run(point.state, name) for name in ("whole run", "until the first step", "outside of steps")),
                draw(point.ms, low, high, PLOT),
                _since(point.since),
            ]
            for point in found
        ],
    )


def _of_run(state: State, name: str) -> str:
    """A number of the run, the mean of those runs that have it."""
    known = [run.run_ms[name] for run in state.runs if name in run.run_ms]
    return duration(sum(known) / len(known)) if known else ""


def draw(interval: Interval, low: float, high: float, width: int) -> str:
    """`    ─────█─────   ` on a common scale."""
    span = (high - low) or 1.0
    begin, middle, end = (
        min(width - 1, max(0, round((value - low) / span * (width - 1))))
        for value in (interval.low, interval.ratio, interval.high)
    )
    cells = ["·"] * width
    cells[begin : end + 1] = "─" * (end + 1 - begin)
    cells[middle] = "█"
    return "".join(cells)


def _since(found: Comparison | None) -> str:
    if found is None or found.step.share is None:
        return ""
    text = formatting.change(found.step.share)
    return text if found.step.outcome == "same" else f"{text}  {found.step.outcome}"


def _others(groups: Sequence[Sequence[Any]], number: int) -> list[Sequence[Any]]:
    return [group for index, group in enumerate(groups) if index not in (number - 1, number)]


def _series_json(series: Series) -> dict[str, Any]:
    return {
        "program": series.program,
        "arguments": list(series.arguments),
        "levers": list(series.levers),
        "machine": series.machine,
        "states": [
            {
                "commit": point.state.run.commit,
                "changes": point.state.run.changes,
                "branch": point.state.run.branch,
                "recorded": point.state.recorded,
                "step_ms": {"median": point.ms.ratio, "low": point.ms.low, "high": point.ms.high},
                "change": to_plain(point.since.step.share) if point.since and point.since.step.share else None,
                "outcome": point.since.step.outcome if point.since else None,
                "runs": [{"case": entry.directory, **entry.run.to_json()} for entry in point.state.entries],
            }
            for point in points(series, len(series.states))
        ],
    }
