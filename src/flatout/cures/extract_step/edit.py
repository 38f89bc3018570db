"""`extract-step`: a step that stands in a loop becomes a traced function above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.cures import _frozen, _trial_edit, function
from flatout.cures.extract_step import attempts
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape, StepStack, Stream
from flatout.source.editing import case_facts
from flatout.source.editing.dataflow import FUNCTIONS
from flatout.source.editing.document import read
from flatout.source.editing.line_tracking import LineMap
from flatout.source.editing.step_search import Search
from flatout.source.editing.step_writing import written
from flatout.source.side_effects import first_line

MOST_STEPS = 4
"""Functions that are made of one file: a GAN has two."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """All steps of the case that stand in this file and can be taken out.

    Where a step ends only on a condition (`if is_nan(loss): continue`), its tape becomes one function and its update
    another.
    """
    lines = _lines(case, path, attempts.is_forward(case))
    if (own := function.own_function(case)) is not None:
        lines = [line for line in lines if not _within(own, source, path, line)] or lines
    text, made, refused = source, 0, list[int]()
    while lines and made < MOST_STEPS:
        line = lines.pop(0)
        new = attempts.taken_out(text, path, line, case).new
        if new is None:
            refused.append(line)
            continue
        moved = LineMap(text, new)
        lines, refused = ([moved.line(other) for other in some] for some in (lines, refused))
        text, made = new, made + 1
    while made and refused:
        line = refused.pop(0)
        new = _update_taken_out(text, line)
        if new is not None and _frozen.of_new(text, new, path, case) is None:
            moved = LineMap(text, new)
            text, refused = new, [moved.line(other) for other in refused]
    return text if made else None


def takes_in_metrics(case: Case) -> bool:
    """Whether a loop updates metrics behind the call of a step that is a function of its own, traced or not: one graph
    for both."""
    own = function.own_function(case)
    for path, text in _trial_edit.sources(case):
        for line in _lines(case, path, attempts.is_forward(case)):
            if own is not None and _within(own, text, path, line):
                continue
            others = _frozen.others(text, path, case)
            search = Search(ast.parse(text), line, others=others, traced=attempts.is_traced(case))
            step = search.found()
            left = {*step.split.before, *step.split.after} if step is not None else set()
            if step is not None and any(search.fit.updates_metric(one) for one in step.body if one not in left):
                return True
    return False


def _within(own: str, text: str, path: str, line: int) -> bool:
    """Whether a line stands in the function `own`, `file:line`."""
    file, _, first = own.rpartition(":")
    if not case_facts.same_file(path, file):
        return False
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
    return any(first_line(node) <= int(first) <= node.lineno and line in _extent(node) for node in functions)


def _extent(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _update_taken_out(text: str, line: int) -> str | None:
    module = ast.parse(text)
    if attempts.is_traced_already(module, line):
        return None  # a step that calls the function with the update has it in its graph
    step = Search(module, line).update()
    document = read(text) if step is not None else None
    return written(document, step, "update_weights") if document and step else None


def by_hand(source: str, path: str, case: Case, value: str) -> str | None:
    """Why no step of this file is taken out, with the line that is in the way."""
    for line in _lines(case, path, attempts.is_forward(case)):
        why = attempts.taken_out(source, path, line, case).why
        if why:
            return f"the step is not taken out of the loop: {why}"
    return None


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
