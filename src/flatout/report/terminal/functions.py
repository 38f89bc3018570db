"""Every tf.function: how often it was traced, how often called, and why it was traced again."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len

from flatout.model.case import Case, Function
from flatout.report.formatting import clean, duration, elide, number
from flatout.report.terminal.page import Column, Page

MOST = 25
MOST_REASONS = 8


def has_data(case: Case) -> bool:
    return bool(case.functions)


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.heading("Functions")
    if not case.functions:
        page.missing(
            "No tf.function was traced in this case.",
            "The program may run eagerly throughout (`flatout explain eager-step`), or the case comes from a "
            "trace that did not record tracing. `flatout run` records it.",
        )
        return
    ranked = sorted(case.functions, key=lambda function: -function.trace_ms)
    page.table(
        [
            Column("traces", right=True),
            Column("tracing", right=True),
            Column("calls", right=True),
            Column("in calls", right=True, drop=3),
            Column("objects", right=True, drop=5),
            Column("nodes", right=True, drop=6),
            Column("XLA", drop=4),
            Column("function", flexible=True),
            Column("where", flexible=True, middle=True, drop=2),
        ],
        [_row(function, page) for function in ranked[:MOST]],
    )
    if len(ranked) > MOST:
        page.line(f"and {len(ranked) - MOST:,} more, {duration(sum(f.trace_ms for f in ranked[MOST:]))}")
    for function in ranked:
        if function.why:
            _why(function, page)


def _row(function: Function, page: Page) -> list[str]:
    return [
        number(function.traces),
        duration(function.trace_ms),
        number(function.calls),
        duration(function.call_ms),
        number(function.instances) if function.instances > 1 else "",
        number(function.nodes) if function.nodes else "",
        "" if function.jit_compile is None else ("yes" if function.jit_compile else "no"),
        function.name,
        page.location(function.where),
    ]


def _why(function: Function, page: Page) -> None:
    page.heading(f"Why {clean(function.name, 60)} was traced again")
    for reason in function.why[:MOST_REASONS]:
        times = f" ({reason.count:,} times)" if reason.count > 1 else ""
        page.line(
            (clean(reason.argument, 60), "bold"),
            ": ",
            clean(reason.before, 160),
            " → ",
            clean(reason.after, 160),
            times,
        )
        if reason.where and reason.where.file:
            spot = page.location(reason.where, page.width - 20)
            code = f"   {clean(reason.where.code)}" if reason.where.code else ""
            page.line("called from ", (spot, "bold"), elide(code, page.width - 16 - cell_len(spot)), indent=4)
    if len(function.why) > MOST_REASONS:
        page.line(f"and {len(function.why) - MOST_REASONS:,} reasons more")
