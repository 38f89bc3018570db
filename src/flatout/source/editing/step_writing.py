"""Writes a step that was found as a traced function, and its call in place of it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

import libcst as cst

from flatout.source.editing import imports, indentation, statements, tf_functions
from flatout.source.editing.dataflow import arguments
from flatout.source.editing.document import Document, free
from flatout.source.editing.step_search import Step

LONGEST = 119
"""Characters of a line; a longer call gets a line of its own for what it passes."""


def written(document: Document, step: Step, name: str) -> str | None:
    first, last = step.body[0].lineno, step.body[-1].end_lineno or 0
    start, end = document.offset(first), document.line_end(document.offset(last))
    outer: cst.CSTNode | None = next((item for item in document.tree.body if first in document.lines(item)), None)
    if step.method is not None:
        outer = tf_functions.definition(document, step.method.lineno)
    if step.above is not None:
        outer = _statement_at(document, step.above.lineno)
    if outer is None or not isinstance(outer, statements.WHOLE):
        return None
    rows = _Rows(document, step)
    if not rows.fit:
        return None
    name = free(document, f"_{name}" if step.method else name)
    here = arguments(step.method)[0] if step.method else ""
    given = [item for item in step.given if item.name != here]
    back = ", ".join(step.back)
    level = document.indentation(start)
    traced = imports.spell(document, tf_functions.TRACED)
    names = [here, *(item.name for item in given)] if here else [item.name for item in given]
    lines = [
        f"@{traced}(reduce_retracing=True)" if step.relaxed else f"@{traced}",
        f"def {name}({', '.join(names)}):",
        *(f"{document.indent}{unset} = None" for unset in step.unset),
        *rows.kept(),
        *([f"{document.indent}return {back}"] if back else []),
    ]
    statements.define(document, outer, *lines, blanks=1 if here or step.above is not None else 2)
    call = f"{here}.{name}" if here else name
    line = _call(document, level, f"{back} = {call}" if back else call, [item.value for item in given])
    parts = [*rows.moved(step.split.before), line]
    document.replace(start, end, document.newline.join([*parts, *rows.moved(step.split.after)]))
    return document.result()


def _call(document: Document, level: str, head: str, values: Sequence[str]) -> str:
    """The call in one line, with its arguments in a line of their own, or each of them in one."""
    joined = ", ".join(values)
    line = f"{level}{head}({joined})"
    if len(line) <= LONGEST:
        return line
    inner = f"{document.newline}{level}{document.indent}"
    if len(level + document.indent + joined) > LONGEST:
        joined = f",{inner}".join(values) + ","
    return f"{level}{head}({inner}{joined}{document.newline}{level})"


def _statement_at(document: Document, line: int) -> cst.CSTNode | None:
    """The outermost statement that begins on a line."""
    every = document.all(cst.SimpleStatementLine, cst.For, cst.While, cst.With, cst.If, cst.Try)
    found = [node for node in every if document.line(node) == line]
    return max(found, key=lambda node: document.span(node)[1], default=None)


@dataclasses.dataclass(frozen=True)
class _Extent:
    """Lines of a statement, with the comments above it."""

    first: int
    last: int


class _Rows:
    """The lines of the step: those of the function, and those of the statements that are moved out of it."""

    def __init__(self, document: Document, step: Step) -> None:
        self.document, self.step = document, step
        self.rows = document.source.split(document.newline)
        self.strings = indentation.string_lines(document.source)
        self.level = document.indentation(document.offset(step.body[0].lineno))
        both = (*step.split.before, *step.split.after)
        self.extents = {id(statement): self._extent(statement) for statement in both}
        self.fit = all(self._has_own_lines(statement) for statement in both)

    def _extent(self, statement: ast.stmt) -> _Extent:
        first, margin = statement.lineno, self._margin(statement.lineno)
        while first > self.step.body[0].lineno and self.rows[first - 2].startswith(f"{margin}#"):
            first -= 1
        return _Extent(first, statement.end_lineno or statement.lineno)

    def _margin(self, line: int) -> str:
        row = self.rows[line - 1]
        return row[: len(row) - len(row.lstrip())]

    def _has_own_lines(self, statement: ast.stmt) -> bool:
        begin = self.rows[statement.lineno - 1].encode()[: statement.col_offset]
        end = self.rows[(statement.end_lineno or 0) - 1].encode()[statement.end_col_offset or 0 :]
        return not begin.strip() and (end.strip() in (b"", b";") or end.strip().startswith(b"#"))

    def kept(self) -> list[str]:
        """The body of the function."""
        gone = {line for extent in self.extents.values() for line in range(extent.first, extent.last + 1)}
        first, last = self.step.body[0].lineno, self.step.body[-1].end_lineno or 0
        found: list[str] = []
        for number in range(first, last + 1):
            row = self.rows[number - 1]
            if number in gone or (not row.strip() and (not found or not found[-1].strip())):
                continue
            found += indentation.moved([row], number, self.level, self.document.indent, self.strings)
        while found and not found[-1].strip():
            found.pop()
        return found

    def moved(self, moving: Sequence[ast.stmt]) -> list[str]:
        """Statements beside the call."""
        found: list[str] = []
        for statement in moving:
            extent = self.extents[id(statement)]
            rows = self.rows[extent.first - 1 : extent.last]
            found += indentation.moved(rows, extent.first, self._margin(statement.lineno), self.level, self.strings)
        return found
