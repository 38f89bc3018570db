"""All evidence of the case, for readers who want to verify a finding."""

from __future__ import annotations

from flatout.model.case import Evidence
from flatout.model.evidence.outcomes import EnvironmentReading, LeverSkipped
from flatout.report.formatting import quantity
from flatout.report.html.components import file_and_line, folded
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, tag
from flatout.report.html.tables import Column, table

TITLE = "Evidence"
ELSEWHERE = (EnvironmentReading, LeverSkipped)
"""Kinds that other views show completely."""


def has_data(context: ReportContext) -> bool:
    return bool(_shown(context))


def write(context: ReportContext) -> Html:
    items = _shown(context)
    rows = [
        [item.kind, quantity(item.value, item.unit) if item.value is not None else "", item.note, item.source,
         file_and_line(item.where)]
        for item in items
    ]  # fmt: skip
    columns = [Column("kind"), Column("value"), Column("note", wide=True), Column("by", minor=True),
               Column("where", minor=True)]  # fmt: skip
    listed = table(columns, rows, "All evidence of the case", find="evidence")
    return tag("div", folded(f"{len(items):,} observations, as they were recorded", listed))


def _shown(context: ReportContext) -> list[Evidence]:
    return [item for item in context.case.evidence if not isinstance(item, ELSEWHERE)]
