"""Which operations the step spends its time in."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.text import clean, duration, number, share

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
            Column("where", flexible=True, middle=True, drop=2, style="cyan"),
        ],
        [
            [duration(op.self_ms), share(op.share), number(op.count), op.name, op.type, short(op.device),
             op.dtype, page.place(op.where)]
            for op in ranked[:MOST]
        ],
    )  # fmt: skip
    if len(ranked) > MOST:
        rest = ranked[MOST:]
        total = duration(sum(op.self_ms for op in rest))
        page.line((f"and {len(rest):,} more, {total} together; `flatout show --json FILE` has all", "dim"))


def short(device: str) -> str:
    """`/job:localhost/replica:0/task:0/device:GPU:0` is GPU:0 to everybody."""
    return clean(device, 60).rsplit("device:", 1)[-1].lstrip("/")
