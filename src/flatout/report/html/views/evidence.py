"""Everything that was observed, judged or not: for whoever wants to check a finding."""

from __future__ import annotations

from flatout.model.case import Evidence
from flatout.model.evidence.outcomes import EnvironmentReading, LeverSkipped
from flatout.report.html.markup import Html, tag
from flatout.report.html.material import Material
from flatout.report.html.parts import file_and_line, folded
from flatout.report.html.tables import Column, table
from flatout.report.terminal.text import quantity

TITLE = "Evidence"
ELSEWHERE = (EnvironmentReading, LeverSkipped)
"""Kinds that another view shows in full."""


def has_data(material: Material) -> bool:
    return bool(_shown(material))


def write(material: Material) -> Html:
    items = _shown(material)
    rows = [
        [item.kind, quantity(item.value, item.unit) if item.value is not None else "", item.note, item.source,
         file_and_line(item.where)]
        for item in items
    ]  # fmt: skip
    columns = [Column("kind"), Column("value"), Column("note", wide=True), Column("by", minor=True),
               Column("where", minor=True)]  # fmt: skip
    listed = table(columns, rows, "All evidence of the case", find="evidence")
    return tag("div", folded(f"{len(items):,} observations, as they were recorded", listed))


def _shown(material: Material) -> list[Evidence]:
    return [item for item in material.case.evidence if not isinstance(item, ELSEWHERE)]
