"""`extract-step`: a step that stands in a loop becomes a traced function above it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Sequence

import libcst as cst

from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape, StepStack, Stream
from flatout.source.editing import array_arguments, case_facts, imports, indentation, statements, tf_functions
from flatout.source.editing.dataflow import FUNCTIONS, arguments, called_name
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.graph_fit import is_traced
from flatout.source.editing.line_tracking import LineMap
from flatout.source.editing.step_search import Search, Step

MOST_STEPS = 4
"""Functions that are made of one file: a GAN has two."""
LONGEST = 119
"""Characters of a line; a longer call gets a line of its own for what it passes."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """All steps of the case that stand in this file and can be taken out."""
    forward = _forward(case)
    lines = _lines(case, path, forward)
    text, made = source, 0
    while lines and made < MOST_STEPS:
        line = lines.pop(0)
        new = _taken_out(text, line, forward)
        if new is not None:
            moved = LineMap(text, new)
            lines = [moved.line(other) for other in lines]
            text, made = new, made + 1
    return text if made else None


def _taken_out(text: str, line: int, forward: bool) -> str | None:
    module = ast.parse(text)
    if _is_traced_already(module, line):
        return None
    step = Search(module, line, forward).found()
    if step is None and not forward:
        # What NumPy computes in the step may be an argument of it.
        other = array_arguments.taken_out(text, line)
        step = Search(ast.parse(other), LineMap(text, other).line(line)).found() if other is not None else None
        text = other or text
    document = read(text) if step is not None else None
    return _written(document, step, "infer" if forward else "train_step") if document and step else None


def _is_traced_already(module: ast.Module, line: int) -> bool:
    """Whether a traced function of the file calls the function around a line: the loss of a step, say."""
    functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
    around = {node.name for node in functions if node.lineno <= line <= (node.end_lineno or 0)}
    called = {
        called_name(node)
        for function in functions
        if is_traced(function)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    return bool(around & called)


def by_hand(source: str, path: str, case: Case, value: str) -> str | None:
    """Why no step of this file is taken out, with the line that is in the way."""
    forward = _forward(case)
    for line in _lines(case, path, forward):
        search = Search(ast.parse(source), line, forward)
        if search.found() is None and search.refusal is not None:
            return f"the step is not taken out of the loop: {search.refusal.text}"
    return None


def _forward(case: Case) -> bool:
    steps = list(case_facts.steps(case))
    return bool(steps) and steps[0].step == "model"


def _lines(case: Case, path: str, forward: bool) -> list[int]:
    """Where the update, the gradient or the model is asked for; then the lines that call on to there."""
    found: dict[int, None] = {}
    for item in _stacks(case, forward):
        for frame in item.stack:
            if case_facts.same_file(path, frame.file):
                found.setdefault(frame.line)
        if (
            not item.stack
            and item.where is not None
            and item.where.line
            and case_facts.same_file(path, item.where.file)
        ):
            found.setdefault(item.where.line)
    return list(found) or case_facts.lines(case, path, "eager-step")


def _stacks(case: Case, forward: bool) -> Iterator[StepStack | EagerTape | Stream]:
    """Updates first: a tape may be inside of another one."""
    yield from case_facts.steps(case)
    if not forward:
        yield from (item for item in case.evidence_of(Stream) if item.of == "apply")
        yield from case.evidence_of(EagerTape)


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(document: Document, step: Step, name: str) -> str | None:
    first, last = step.body[0].lineno, step.body[-1].end_lineno or 0
    start, end = document.offset(first), document.line_end(document.offset(last))
    outer: cst.CSTNode | None = next((item for item in document.tree.body if first in document.lines(item)), None)
    if step.method is not None:
        outer = tf_functions.definition(document, step.method.lineno)
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
        *rows.kept(),
        *([f"{document.indent}return {back}"] if back else []),
    ]
    blank = [""] * (1 if here else 2)
    statements.before(document, outer, *blank[_blanks_above(document, outer) :], *lines, *blank)
    values = ", ".join(item.value for item in given)
    call = f"{here}.{name}({values})" if here else f"{name}({values})"
    line = f"{level}{back} = {call}" if back else f"{level}{call}"
    if len(line) > LONGEST:
        line = line.replace(
            f"({values})", f"({document.newline}{level}{document.indent}{values}{document.newline}{level})"
        )
    parts = [*rows.moved(step.split.before), line]
    document.replace(start, end, document.newline.join([*parts, *rows.moved(step.split.after)]))
    return document.result()


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
        return not begin.strip() and (not end.strip() or end.strip().startswith(b"#"))

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


def _blanks_above(document: Document, statement: cst.CSTNode) -> int:
    """Empty lines above a statement and the comments that belong to it; two or more at the top of a block."""
    rows = document.source[: document.line_start(document.span(statement)[0])].split(document.newline)[:-1]
    while rows and rows[-1].lstrip().startswith(("#", "@")):
        rows.pop()
    blanks = 0
    while rows and not rows[-1].strip():
        rows.pop()
        blanks += 1
    return blanks if rows and not rows[-1].rstrip().endswith(":") else 2
