"""Every tf.function: how often it was traced, and which argument caused it to be traced again."""

from __future__ import annotations

from flatout.model.case import Function, Retrace
from flatout.report.formatting import duration, number
from flatout.report.html.components import chip, code, file_and_line, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.tables import Cell, Column, table

TITLE = "Functions"
MOST_REASONS = 12
MOST_AGAIN = 30


def has_data(context: ReportContext) -> bool:
    return bool(context.case.functions)


def write(context: ReportContext) -> Html:
    ranked = sorted(context.case.functions, key=lambda function: -function.trace_ms)
    again = [function for function in ranked if function.why]
    return join(
        [_again(function, context) for function in again[:MOST_AGAIN]],
        _table(ranked, context),
    )


def _again(function: Function, context: ReportContext) -> Html:
    return tag(
        "div",
        subheading(
            f"Why {function.name} was traced again", f"{function.traces:,} traces, {duration(function.trace_ms)} in all"
        ),
        tag("ol", [tag("li", _reason(reason, context)) for reason in function.why[:MOST_REASONS]], class_="reasons"),
        tag("p", f"and {len(function.why) - MOST_REASONS:,} reasons more", class_="quiet")
        if len(function.why) > MOST_REASONS
        else None,
        class_="block",
    )


def _reason(reason: Retrace, context: ReportContext) -> Html:
    return join(
        tag(
            "p",
            tag("strong", "argument "),
            tag("code", reason.argument),
            " changed ",
            chip(f"{reason.count:,} times" if reason.count != 1 else "once"),
        ),
        tag(
            "dl",
            tag("dt", "from"),
            tag("dd", tag("code", reason.before, class_="before")),
            tag("dt", "to"),
            tag("dd", tag("code", reason.after, class_="after")),
            class_="change",
        ),
        code(context, reason.where),
    )


def _table(ranked: list[Function], context: ReportContext) -> Html:
    rows = [
        [
            f.name,
            Cell(number(f.traces), f.traces),
            Cell(duration(f.trace_ms), f.trace_ms),
            Cell(number(f.calls), f.calls),
            Cell(duration(f.call_ms), f.call_ms),
            Cell(number(f.instances), f.instances),
            Cell(number(f.nodes) if f.nodes else "", f.nodes),
            "" if f.jit_compile is None else "yes" if f.jit_compile else "no",
            file_and_line(f.where),
        ]
        for f in ranked
    ]
    columns = [
        Column("function", wide=True),
        Column("traces", True),
        Column("tracing", True),
        Column("calls", True),
        Column("in calls", True, minor=True),
        Column("objects", True, minor=True),
        Column("nodes", True, minor=True),
        Column("XLA", minor=True),
        Column("where", minor=True),
    ]
    return table(columns, rows, "All functions that were traced or called", find="functions")
