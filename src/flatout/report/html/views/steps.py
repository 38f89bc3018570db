"""Step times over the run, with the warm-up, outliers, steps in which a function was traced, and the trace window."""

from __future__ import annotations

from typing import Any

from flatout.model.case import Steps
from flatout.report.formatting import duration
from flatout.report.html.charts import chart
from flatout.report.html.components import folded
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.tables import Cell, Column, table

TITLE = "Step times"
FAR = 3.0
"""A step that takes this many times the median is an outlier."""


def has_data(context: ReportContext) -> bool:
    return context.case.steps is not None and len(context.case.steps.times_ms) > 1


def write(context: ReportContext) -> Html:
    steps = context.case.steps
    assert steps is not None
    times = steps.times_ms
    # A trace counts its last step but cannot time it, so the numbers differ by one.
    scale = steps.count / len(times) if steps.count > len(times) + 1 else 1.0
    numbers = [round(at * scale) for at in range(len(times))]
    traced = dict(zip(context.marks.traced, context.marks.trace_ms, strict=True))
    warm = list(range(min(steps.warmup, len(times)))) if scale == 1 else []
    slow = [at for at, time in enumerate(times) if at not in warm and at not in traced and time > FAR * steps.ms.median]
    special = {*warm, *traced, *slow}
    plain = [at for at in range(len(times)) if at not in special]
    traces = [
        _points("steps", plain, numbers, times, "@accent", "circle"),
        _points("warm-up", [at for at in warm if at not in traced], numbers, times, "@muted", "circle-open"),
        _points("outliers", slow, numbers, times, "@bad", "diamond"),
        _points("a function was traced", list(traced), numbers, times, "@trace", "triangle-up"),
    ]
    return join(
        tag("p", _sentence(steps, len(traced)), class_="lead"),
        chart(
            [trace for trace in traces if trace["x"]],
            _layout(steps, times),
            f"Step times of {steps.count:,} steps. {_sentence(steps, len(traced))}",
            height=340,
            caption="Drag to zoom, double-click to see all. "
            + ("The times are a regular sample. " if scale > 1 else "")
            + ("The shaded steps are in the trace window." if steps.window else ""),
        ),
        _slowest(steps, numbers, times, traced),
    )


def _sentence(steps: Steps, traced: int) -> str:
    parts = [f"Half of the steps take {duration(steps.ms.median)} or less, nine in ten {duration(steps.ms.p90)}"]
    if abs(steps.trend) >= 0.05:
        become = "slower" if steps.trend > 0 else "faster"
        parts.append(f"they get {become} by {100 * abs(steps.trend):.0f} % over the run")
    if steps.outliers:
        parts.append(f"{steps.outliers:,} are outliers")
    if traced:
        parts.append(f"{traced:,} had a function traced in them")
    return "; ".join(parts) + "."


def _points(
    name: str, chosen: list[int], numbers: list[int], times: tuple[float, ...], colour: str, symbol: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [numbers[at] for at in chosen],
        "y": [times[at] for at in chosen],
        "marker": {"color": colour, "size": 5 if symbol == "circle" else 8, "symbol": symbol, "opacity": 0.8},
        "hovertemplate": "step %{x}<br>%{y:.4~g} ms<extra>" + name + "</extra>",
    }


def _layout(steps: Steps, times: tuple[float, ...]) -> dict[str, Any]:
    ordered = sorted(times)
    wide = ordered[-1] > 20 * max(steps.ms.median, 1e-9)
    shapes: list[dict[str, Any]] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": steps.ms.median, "y1": steps.ms.median,
         "line": {"color": "@text", "width": 1, "dash": "dot"}}
    ]  # fmt: skip
    if steps.window:
        shapes.append(
            {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": steps.window[0], "x1": steps.window[1],
             "fillcolor": "@accent", "opacity": 0.08, "line": {"width": 0}, "layer": "below"}
        )  # fmt: skip
    return {
        "xaxis": {"title": {"text": "step"}},
        # A first step of several seconds would leave no room for the others.
        "yaxis": {"title": {"text": "ms"}, "type": "log" if wide else "linear", "rangemode": "tozero"},
        "shapes": shapes,
        "showlegend": True,
    }


def _slowest(steps: Steps, numbers: list[int], times: tuple[float, ...], traced: dict[int, float]) -> Html:
    ranked = sorted(range(len(times)), key=lambda at: -times[at])[:10]
    rows = [
        [
            Cell(f"{numbers[at]:,}", numbers[at]),
            Cell(duration(times[at]), times[at]),
            Cell(f"{times[at] / steps.ms.median:.1f}×" if steps.ms.median else "", times[at]),
            Cell(duration(traced[at]) if at in traced else "", traced.get(at, 0.0)),
        ]
        for at in ranked
    ]
    columns = [Column("step", True), Column("time", True), Column("of the median", True), Column("tracing", True)]
    return folded("The slowest steps", table(columns, rows, "The slowest steps"))
