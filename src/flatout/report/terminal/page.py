"""The page that a view writes to: headings, sentences, tables that fit. Only this module uses rich's console.

rich shrinks what is too wide by cutting anywhere, also through numbers. Here a table is fitted before rich
sees it: columns of numbers keep their width, flexible columns are elided, and columns marked so are left out
when it gets narrow.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from flatout.model.case import Where
from flatout.report.formatting import clean, elide, location
from flatout.source.notebooks.program import by_cells

Part = str | tuple[str, str] | Text
"""A part of a sentence: plain text, (text, style), or rich text."""

GAP = 2
_LEAST = 20
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)))
_TIED = "\ue000"
"""Stands for the blank between a number and its unit while lines are broken: rich breaks at a no-break space too."""
_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|µs|min|B|KiB|MiB|GiB|TiB)(?!\w))")


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    flexible: bool = False
    middle: bool = False
    """Elide in the middle: for paths."""
    drop: int = 0
    """Left out when the table is too wide, the highest number first; 0 is never left out."""
    style: str = ""


class Page:
    def __init__(self, width: int, color: bool, base: str = "") -> None:
        self.width = width
        self._color = color
        self._base = base
        self._stream = io.StringIO()
        self._console = Console(
            file=self._stream,
            width=width,
            force_terminal=color,
            color_system="256" if color else None,
            no_color=not color,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=False,
        )

    def text(self) -> str:
        lines = (line.rstrip() for line in self._stream.getvalue().replace(_TIED, " ").splitlines())
        return "\n".join(lines).strip("\n") + "\n"

    def draft(self) -> Page:
        """An empty page of the same form, to see how long something becomes."""
        return Page(self.width, self._color, self._base)

    @property
    def length(self) -> int:
        """Lines."""
        return self.text().count("\n")

    def take(self, other: Page) -> None:
        """Add what was written to a draft."""
        self._stream.write(other._stream.getvalue())

    def gap(self) -> None:
        """An empty line, unless there is one already."""
        if not self._stream.getvalue().endswith("\n\n"):
            self._console.print()

    def heading(self, title: str, note: str = "") -> None:
        line = Text("").join([_styled((title, "bold")), _styled(f"  {note}" if note else "")])
        self.gap()
        self._console.print(line)

    def line(self, *parts: Part, indent: int = 2) -> None:
        """Parts of one sentence, each a text or (text, style), wrapped with a hanging indent."""
        sentence = Text()
        for part in parts:
            sentence.append_text(_styled(part))
        self._console.print(Padding(sentence, (0, 0, 0, indent)))

    def code(self, line: str, indent: int = 4) -> None:
        """A line of code as written; a line that is too long is wrapped. What a patch adds and removes is bold."""
        style = "bold" if line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) else ""
        self._console.print(Padding(Text(line, style=style, overflow="fold"), (0, 0, 0, indent)))

    def labelled(self, label: str, *parts: Part, indent: int = 4, room: int = 10, style: str = "") -> None:
        """A label, followed by a sentence whose further lines are aligned with its first one."""
        grid = Table.grid(padding=0)
        grid.add_column(min_width=room, no_wrap=True)
        grid.add_column()
        grid.add_row(_styled((label, style)), Text("").join(_styled(part) for part in parts))
        self._console.print(Padding(grid, (0, 0, 0, indent)))

    def location(self, where: Where | None, width: int = 60) -> str:
        """`file:line`, relative to the directory in which the program ran."""
        return location(where, width, self._base)

    def fields(self, items: Sequence[str | Text], indent: int = 2, separator: str = "   ") -> None:
        """Short items in a row; a line breaks only between two of them."""
        row = Text()
        for item in (_styled(item) for item in items if item):
            if row and row.cell_len + len(separator) + item.cell_len > self.width - indent:
                self.line(row, indent=indent)
                row = item
            else:
                row = Text(separator).join([row, item]) if row else item
        if row:
            self.line(row, indent=indent)

    def missing(self, what: str, todo: str) -> None:
        """Says that the case lacks some data, and what would provide it."""
        self.line(what)
        self.line(todo)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: int = 2) -> None:
        rows = [[clean(cell) for cell in row] for row in rows]
        kept = self._kept(columns, rows, indent)
        shown = [columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in rows]
        widths = _fit(shown, cells, self.width - indent - GAP * (len(shown) - 1))
        grid = Table.grid(padding=(0, GAP, 0, 0))
        for column, width in zip(shown, widths, strict=True):
            grid.add_column(justify="right" if column.right else "left", no_wrap=True, min_width=width)
        grid.add_row(*(Text(elide(c.title, w)) for c, w in zip(shown, widths, strict=True)))
        for row in cells:
            grid.add_row(
                *(
                    Text(elide(cell, w, c.middle) if c.flexible else cell, style=c.style)
                    for cell, c, w in zip(row, shown, widths, strict=True)
                )
            )
        self._console.print(Padding(grid, (0, 0, 0, indent)))

    def _kept(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: int) -> list[int]:
        kept = [i for i in range(len(columns)) if any(row[i] for row in rows) or not columns[i].drop]
        while True:
            least = sum(
                min(_LEAST, _width(columns[i], rows, i)) if columns[i].flexible else _width(columns[i], rows, i)
                for i in kept
            )
            droppable = [i for i in kept if columns[i].drop]
            if not droppable or least + GAP * (len(kept) - 1) <= self.width - indent:
                return kept
            kept.remove(max(droppable, key=lambda i: columns[i].drop))


def _styled(part: Part) -> Text:
    """Removes control characters that a view forgot to clean, and names places in notebooks by their cells."""
    if isinstance(part, Text):
        return part
    text, style = (part, "") if isinstance(part, str) else part
    text = by_cells(text)
    return Text(_UNIT.sub(_TIED, text.translate(_CONTROLS)), style=style)


def _width(column: Column, rows: Sequence[Sequence[str]], position: int) -> int:
    return max([cell_len(column.title), *(cell_len(row[position]) for row in rows)])


def _fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Fixed columns get the width they need; the rest is divided among the others, the narrowest first."""
    widths = [_width(column, rows, i) for i, column in enumerate(columns)]
    flexible = sorted((i for i, column in enumerate(columns) if column.flexible), key=lambda i: widths[i])
    left = room - sum(width for i, width in enumerate(widths) if i not in flexible)
    for done, i in enumerate(flexible):
        widths[i] = max(4, min(widths[i], left // (len(flexible) - done)))
        left -= widths[i]
    return widths
