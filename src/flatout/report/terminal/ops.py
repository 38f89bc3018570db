"""Which operations the step spends its time in."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.report.formatting import duration, number, share
from flatout.report.labels import device_name, op_name
from flatout.report.terminal.page import Column, Page

MOST = 30


def has_data(case: Case) -> bool:
    return bool(case.ops)


def write(case: Case, page: Page, directory: Path | None) -> None:
    if not case.ops:
        page.heading("Operations")
        page.missing(
            "No operation times in this case.",
            "They come from the trace window of `flatout run`, or from `flatout trace PATH`.",
        )
        return
    ranked = sorted(case.ops, key=lambda op: -op.self_ms)
    page.heading("Operations", "self time per step")
    page.table(
        [
            Column("self", right=True),
            Column("share", right=True),
            Column("count", right=True),
            Column("operation", flexible=True, middle=True),
            Column("type", flexible=True, drop=1),
            Column("device", drop=3),
            Column("dtype", drop=4),
            Column("where", flexible=True, middle=True, drop=2),
        ],
        [
            [duration(op.self_ms), share(op.share), number(op.count), op_name(op.name), op.type, device_name(op.device),
             op.dtype, page.location(op.where)]
            for op in ranked[:MOST]
        ],
    )  # fmt: skip
    if len(ranked) > MOST:
        rest = ranked[MOST:]
        total = duration(sum(op.self_ms for op in rest))
        page.line(f"and {len(rest):,} more, {total} together; `flatout show --json FILE` has all")
