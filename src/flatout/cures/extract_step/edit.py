"""`extract-step`: a step that stands in a loop becomes a traced function above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from flatout.cures import _frozen, _trial_edit, function
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape, StepStack, Stream
from flatout.source.editing import array_arguments, case_facts
from flatout.source.editing.dataflow import FUNCTIONS, called_name
from flatout.source.editing.document import read
from flatout.source.editing.graph_fit import is_traced
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
    forward = _forward(case)
    lines = _lines(case, path, forward)
    if (own := function.own_function(case)) is not None:
        lines = [line for line in lines if not _within(own, source, path, line)] or lines
    text, made, refused = source, 0, list[int]()
    while lines and made < MOST_STEPS:
        line = lines.pop(0)
        new = _taken_out(text, line, forward, _frozen.others(text, path, case), _traced(case))
        if new is None or _frozen.of_new(text, new, path, case) is not None:
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
        for line in _lines(case, path, _forward(case)):
            if own is not None and _within(own, text, path, line):
                continue
            search = Search(ast.parse(text), line, others=_frozen.others(text, path, case), traced=_traced(case))
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
    step = Search(ast.parse(text), line).update()
    document = read(text) if step is not None else None
    return written(document, step, "update_weights") if document and step else None


def _taken_out(
    text: str, line: int, forward: bool, others: Mapping[str, ast.Module], traced: bool = False
) -> str | None:
    module = ast.parse(text)
    if _is_traced_already(module, line):
        return None
    search = Search(module, line, forward, others=others, traced=traced)
    step = search.found()
    if step is not None:
        # Nor does a graph hold what an array of indices picks: `y[rows]` is an argument, as a reader would write it.
        other = array_arguments.rows_taken_out(text, search.fit, step)
        moved = LineMap(text, other).line(line) if other is not None else 0
        again = Search(ast.parse(other), moved, forward, others=others).found() if other is not None else None
        text, step = (other, again) if other is not None and again is not None else (text, step)
    elif not forward:
        # What NumPy computes in the step may be an argument of it.
        other = array_arguments.taken_out(text, line)
        moved = LineMap(text, other).line(line) if other is not None else 0
        step = Search(ast.parse(other), moved, others=others).found() if other is not None else None
        text = other or text
    document = read(text) if step is not None else None
    return written(document, step, "infer" if forward else "train_step") if document and step else None


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
    forward, others = _forward(case), _frozen.others(source, path, case)
    for line in _lines(case, path, forward):
        search = Search(ast.parse(source), line, forward, others=others)
        if search.found() is None and search.refusal is not None:
            return f"the step is not taken out of the loop: {search.refusal.text}"
        new = _taken_out(source, line, forward, others)
        why = _frozen.of_new(source, new, path, case) if new is not None else None
        if why is not None:
            return f"the step is not taken out of the loop: {why}"
    return None


def _traced(case: Case) -> bool:
    """Whether the step is a call of a traced function."""
    return queries.step_kind(case) in ("function", "train-function")


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
