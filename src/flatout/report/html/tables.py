"""Tables of the page: complete as HTML; scripts make them sortable and searchable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flatout.report.html.markup import Child, Html, tag

MOST = 500
"""Rows of one table at most; the JSON has all."""
AT_ONCE = 15
"""Rows that are shown before the reader expands the table."""


@dataclass(frozen=True)
class Column:
    title: str
    number: bool = False
    wide: bool = False
    """Takes the remaining width, and breaks long words."""
    minor: bool = False
    """Hidden on narrow screens."""


@dataclass(frozen=True)
class Cell:
    """The content that is shown and, where it differs, the value to sort by."""

    content: Child
    by: float | str | None = None


Row = Sequence[Cell | Child]


def table(columns: Sequence[Column], rows: Sequence[Row], caption: str, *, find: str = "", total: int = 0) -> Html:
    """`find` names what can be searched for; without it there is no search box. `total` includes rows that were
    omitted.

    A minor column that is empty is left out.
    """
    kept = [at for at, column in enumerate(columns) if not column.minor or any(_filled(row[at]) for row in rows)]
    columns, rows = [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]
    shown = rows[:MOST]
    left = max(total, len(rows)) - len(shown)
    return tag(
        "div",
        tag("input", type="search", class_="find", placeholder=f"Search {find}", aria_label=f"Search {find}")
        if find and len(rows) > AT_ONCE
        else None,
        tag(
            "div",
            tag(
                "table",
                tag("caption", caption),
                tag("thead", tag("tr", [_head(column) for column in columns])),
                tag("tbody", [tag("tr", [_cell(c, v) for c, v in zip(columns, row, strict=True)]) for row in shown]),
            ),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=caption,
        ),
        tag("p", f"and {left:,} more in the JSON", class_="quiet") if left > 0 else None,
        class_="table",
        data_at_once=AT_ONCE,
    )


def _filled(value: Cell | Child) -> bool:
    return bool(value.content if isinstance(value, Cell) else value)


def _head(column: Column) -> Html:
    return tag("th", column.title, scope="col", class_=_classes(column))


def _cell(column: Column, value: Cell | Child) -> Html:
    cell = value if isinstance(value, Cell) else Cell(value)
    by = f"{cell.by:.9g}" if isinstance(cell.by, (int, float)) else cell.by
    return tag("td", cell.content, class_=_classes(column), data_by=by)


def _classes(column: Column) -> str | None:
    names = [n for n, on in (("number", column.number), ("wide", column.wide), ("minor", column.minor)) if on]
    return " ".join(names) or None
