"""`extract-step`: a step that stands in a loop becomes a traced function above it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape, StepStack
from flatout.source.editing import case_facts, imports, statements, tf_functions
from flatout.source.editing.dataflow import arguments
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.step_search import Search, Step


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """The first step of the case that stands in this file and can be taken out."""
    steps = list(case_facts.steps(case))
    forward = bool(steps) and steps[0].step == "model"
    lines = _lines(case, path, steps if forward else [*steps, *case.evidence_of(EagerTape)])
    document = read(source) if lines else None
    if document is None:
        return None
    module = ast.parse(source)
    for line in lines:
        step = Search(module, line, forward).found()
        if step is not None:
            return _written(document, step, "infer" if forward else "train_step")
    return None


def _lines(case: Case, path: str, steps: Sequence[StepStack | EagerTape]) -> list[int]:
    """Where the update, the gradient or the model is asked for; then the lines that call on to there."""
    found: dict[int, None] = {}
    for item in steps:
        for frame in item.stack:
            if case_facts.same_file(path, frame.file):
                found.setdefault(frame.line)
    return list(found) or case_facts.lines(case, path, "eager-step")


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(document: Document, step: Step, name: str) -> str | None:
    first, last = step.body[0].lineno, step.body[-1].end_lineno or 0
    start, end = document.offset(first), document.line_end(document.offset(last))
    outer: cst.CSTNode | None = next((item for item in document.tree.body if first in document.lines(item)), None)
    if step.method is not None:
        outer = tf_functions.definition(document, step.method.lineno)
    if outer is None or not isinstance(outer, statements.WHOLE):
        return None
    name = free(document, f"_{name}" if step.method else name)
    here = arguments(step.method)[0] if step.method else ""
    given = [item for item in step.given if item != here]
    back = ", ".join(step.back)
    indentation = document.indentation(start)
    lines = [
        f"@{imports.spell(document, tf_functions.TRACED)}(reduce_retracing=True)",
        f"def {name}({', '.join([here, *given] if here else given)}):",
        *(_deeper(row, indentation, document.indent) for row in document.source[start:end].split(document.newline)),
        *([f"{document.indent}return {back}"] if back else []),
    ]
    blank = [""] * (1 if here else 2)
    statements.before(document, outer, *blank[_blanks_above(document, outer) :], *lines, *blank)
    call = f"{here}.{name}({', '.join(given)})" if here else f"{name}({', '.join(given)})"
    document.replace(start, end, f"{indentation}{back} = {call}" if back else f"{indentation}{call}")
    return document.result()


def _deeper(row: str, old: str, new: str) -> str:
    """A line of the loop as one of the function."""
    return new + row[len(old) :] if row.startswith(old) else row


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
