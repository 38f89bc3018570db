"""The operations of a step by time: as areas, and as a table to sort and search."""

from __future__ import annotations

from typing import Any

from flatout.model.case import Op
from flatout.report.formatting import duration, number, share
from flatout.report.html.charts import chart, label
from flatout.report.html.components import bar, file_and_line
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join
from flatout.report.html.tables import MOST, Cell, Column, table
from flatout.report.labels import device_name, op_name

TITLE = "Operations"
AREAS = 150
"""Ops with an area of their own; the others are combined by type."""


def has_data(context: ReportContext) -> bool:
    return bool(context.case.ops)


def write(context: ReportContext) -> Html:
    ranked = sorted(context.case.ops, key=lambda op: -op.self_ms)
    return join(_treemap(ranked, bool(context.case.steps)), _table(ranked, context))


def _treemap(ranked: list[Op], stepwise: bool) -> Html | None:
    timed = [op for op in ranked if op.self_ms > 0]
    if len(timed) < 2:
        return None
    totals: dict[str, float] = {}
    rest: dict[str, float] = {}
    for at, op in enumerate(timed):
        totals[op.type] = totals.get(op.type, 0.0) + op.self_ms
        if at >= AREAS:
            rest[op.type] = rest.get(op.type, 0.0) + op.self_ms
    whole = sum(totals.values())
    identities, labels, parents, values = ["all"], ["all ops"], [""], [whole]
    for kind, total in totals.items():
        identities.append(f"type {len(identities)}")
        labels.append(label(kind or "(no type)", 40))
        parents.append("all")
        values.append(total)
    index = {kind: identities[at] for at, kind in enumerate(totals, 1)}
    leaves = [(op.type, op.name.rpartition("/")[2] or op.name, op.self_ms) for op in timed[:AREAS]]
    for kind, name, value in [*leaves, *((kind, "others", value) for kind, value in rest.items())]:
        identities.append(f"op {len(identities)}")
        labels.append(label(name, 60))
        parents.append(index[kind])
        values.append(value)
    per = "a step" if stepwise else "in the window"
    trace: dict[str, Any] = {
        "type": "treemap",
        # Only the ops have values: the chart adds them up, as rounded sums would not match.
        "branchvalues": "remainder",
        "ids": identities,
        "labels": labels,
        "parents": parents,
        "values": [0.0 if at <= len(totals) else round(value, 6) for at, value in enumerate(values)],
        "text": [f"{duration(value)} · {share(value / whole)}" for value in values],
        "textinfo": "label+text",
        "hovertemplate": f"%{{label}}<br>%{{text}} {per}<extra></extra>",
        "tiling": {"pad": 2},
        "textfont": {"color": "@text"},
        "maxdepth": 3,
        "marker": {
            "colors": ["@sunken", *(f"@name:{kind}" for kind in totals)] + [None] * len(labels[len(totals) + 1 :])
        },
        "pathbar": {"visible": True},
    }
    largest = max(totals, key=lambda kind: totals[kind])
    part = share(totals[largest] / whole)
    summary = f"Self time of the ops {per}, grouped by type; the largest type is {largest} with {part}."
    layout = {"margin": {"l": 0, "r": 0, "t": 26, "b": 0}}
    caption = f"Self time {per}: areas by type of operation. Select an area to go into it."
    return chart([trace], layout, summary, height=380, caption=caption)


def _table(ranked: list[Op], context: ReportContext) -> Html:
    rows = [
        [
            Cell([duration(op.self_ms)], op.self_ms),
            Cell([share(op.share), bar(op.share)], op.share),
            Cell(number(op.count), op.count),
            op_name(op.name),
            op.type,
            device_name(op.device),
            f"{op.dtype} {op.shape}".strip(),
            file_and_line(op.where),
        ]
        for op in ranked[:MOST]
    ]
    columns = [
        Column("self", True),
        Column("share", True),
        Column("count", True, minor=True),
        Column("operation", wide=True),
        Column("kind", wide=True, minor=True),
        Column("device", minor=True),
        Column("type and shape", minor=True),
        Column("where", minor=True),
    ]
    caption = "Operations by self time, per step" if context.case.steps else "Operations by self time"
    return table(columns, rows, caption, find="operations", total=len(ranked))
