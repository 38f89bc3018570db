"""The peak memory of the program, and what holds it."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case, Memory
from flatout.report.formatting import clean, duration, share, size
from flatout.report.terminal.charts import area, bar, buckets
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.palette import GREEN

MOST = 20
HEIGHT = 8


def has_data(case: Case) -> bool:
    return case.memory is not None


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.heading("Memory")
    memory = case.memory
    if memory is None:
        page.missing(
            "No memory was recorded in this case.",
            "Allocations come from the trace window of `flatout run`, or from `flatout trace PATH`.",
        )
        return
    limit = memory.limit_bytes
    page.fields(
        [
            f"peak {size(memory.peak_bytes)}",
            f"of {size(limit)} ({share(memory.peak_bytes / limit)})" if limit else "",
            f"allocator {clean(memory.allocator, 40)}" if memory.allocator else "",
            f"process peak {size(memory.process_peak_bytes)}" if memory.process_peak_bytes else "",
        ]
    )
    if len(memory.timeline) > 1:
        _plot(memory, page)
    _holders(memory, page)


def _plot(memory: Memory, page: Page) -> None:
    """A filled curve. Each column shows the maximum of its time span."""
    top = max(count for _, count in memory.timeline) or 1
    label = max(len(size(top)), len("0 B"))
    columns = [max(group) for group in buckets([float(count) for _, count in memory.timeline], page.width - label - 6)]
    page.gap()
    for number, row in enumerate(area(columns, HEIGHT, float(top))):
        name = size(top) if number == 0 else "0 B" if number == HEIGHT - 1 else ""
        page.line(f"{name:>{label}}  ", (row, GREEN))
    span = memory.timeline[-1][0] - memory.timeline[0][0]
    page.line(f"{'':>{label}}  0 ms to {duration(span)} of the window")


def _holders(memory: Memory, page: Page) -> None:
    if not memory.by_op:
        return
    page.heading("At the peak", "what held the memory")
    ranked = sorted(memory.by_op, key=lambda use: -use.bytes)
    peak = memory.peak_bytes or 1
    page.table(
        [
            Column("bytes", right=True),
            Column("share", right=True),
            Column("", drop=3, style=GREEN),
            Column("operation", flexible=True, middle=True),
            Column("shape", flexible=True, drop=1),
            Column("dtype", drop=4),
            Column("where", flexible=True, middle=True, drop=2),
        ],
        [
            [size(use.bytes), share(use.bytes / peak), bar(use.bytes, ranked[0].bytes, 10), use.op, use.shape,
             use.dtype, page.location(use.where)]
            for use in ranked[:MOST]
        ],
    )  # fmt: skip
    if len(ranked) > MOST:
        page.line(f"and {len(ranked) - MOST:,} more")
