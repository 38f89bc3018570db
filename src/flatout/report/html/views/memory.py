"""Memory during the trace window, and what held it at the peak."""

from __future__ import annotations

from flatout.model.case import Memory
from flatout.report.formatting import duration, share, size
from flatout.report.html.charts import chart
from flatout.report.html.components import bar, facts, file_and_line
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join
from flatout.report.html.tables import Cell, Column, table

TITLE = "Memory"
MOST_POINTS = 4000


def has_data(context: ReportContext) -> bool:
    return context.case.memory is not None


def write(context: ReportContext) -> Html:
    memory = context.case.memory
    assert memory is not None
    limit = memory.limit_bytes
    return join(
        facts(
            [
                ("peak in the window", size(memory.peak_bytes) if memory.allocator != "process" else None),
                ("process peak", size(memory.process_peak_bytes) if memory.process_peak_bytes else None),
                ("of the limit", f"{share(memory.peak_bytes / limit)} of {size(limit)}" if limit else None),
                ("allocator", memory.allocator if memory.allocator != "process" else None),
            ]
        ),
        _curve(memory),
        _holders(memory, context),
    )


def _curve(memory: Memory) -> Html | None:
    if len(memory.timeline) < 2:
        return None
    points = _thinned(memory.timeline)
    scale, unit = _unit(memory.peak_bytes)
    at, peak = max(points, key=lambda point: point[1])
    named = [use for use in memory.by_op if not use.op.startswith("(")]  # not "(no op recorded)"
    holder = max(named, key=lambda use: use.bytes, default=None)
    held = f"; {holder.op} alone holds {size(holder.bytes)}" if holder else ""
    span = duration(points[-1][0] - points[0][0])
    summary = f"Memory in use over {span}; the peak of {size(peak)} is at {duration(at)}{held}."
    return chart(
        [
            {
                "type": "scatter",
                "mode": "lines",
                "x": [round(x, 4) for x, _ in points],
                "y": [round(y / scale, 4) for _, y in points],
                "line": {"shape": "hv", "color": "@accent", "width": 1.5},
                "fill": "tozeroy",
                "fillcolor": "@accent-soft",
                "hovertemplate": f"%{{x:.2f}} ms<br>%{{y:.4~g}} {unit}<extra></extra>",
            }
        ],
        {
            "xaxis": {"title": {"text": "ms since the window began"}},
            "yaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "showlegend": False,
            "annotations": [
                {
                    "x": round(at, 4),
                    "y": round(peak / scale, 4),
                    "text": f"peak {size(peak)}",
                    "arrowhead": 0,
                    "ay": -28,
                    "arrowcolor": "@muted",
                }
            ],
        },
        summary,
        height=280,
        caption=summary,
    )


def _thinned(points: tuple[tuple[float, int], ...]) -> list[tuple[float, int]]:
    """At most a few thousand points. Of points that fall together the greatest is kept, so that the peak remains."""
    if len(points) <= MOST_POINTS:
        return list(points)
    step = len(points) / MOST_POINTS
    groups = (points[round(i * step) : round((i + 1) * step)] for i in range(MOST_POINTS))
    return [max(group, key=lambda point: point[1]) for group in groups if group]


def _unit(peak: int) -> tuple[float, str]:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if peak >= 2**power:
            return float(2**power), unit
    return 1.0, "bytes"


def _holders(memory: Memory, context: ReportContext) -> Html | None:
    if not memory.by_op:
        return None
    peak = memory.peak_bytes or 1
    rows = [
        [
            Cell(size(use.bytes), use.bytes),
            Cell([share(use.bytes / peak), bar(use.bytes / peak)], use.bytes),
            use.op,
            use.shape,
            file_and_line(use.where),
        ]
        for use in sorted(memory.by_op, key=lambda use: -use.bytes)
    ]
    columns = [Column("bytes", True), Column("of the peak", True), Column("operation", wide=True),
               Column("shape", minor=True), Column("where", minor=True)]  # fmt: skip
    return table(columns, rows, "What held the memory at the peak", find="operations")
