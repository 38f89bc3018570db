"""Tries to take the step around one line out: as it is, then with what is in the way computed above it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flatout.cures import _frozen
from flatout.model import queries
from flatout.model.case import Case
from flatout.source.editing import array_arguments, case_facts, changing_state, divided_guards, early_gradients
from flatout.source.editing.dataflow import FUNCTIONS, called_name
from flatout.source.editing.document import read
from flatout.source.editing.frozen_state import Frozen
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.graph_fit import is_traced as is_traced_function
from flatout.source.editing.line_tracking import LineMap
from flatout.source.editing.step_search import Search, Step
from flatout.source.editing.step_writing import written
from flatout.source.editing.value_kinds import Kinds

MOST_STATES = 6
"""Attributes that become arguments of one step."""


@dataclass(frozen=True)
class Attempt:
    new: str | None = None
    """The text with the step as a function."""
    why: str = ""
    """What is in the way, with its line in the program; empty where there is no step at the line."""


@dataclass(frozen=True)
class _Found:
    """What a search found at a line, in the text that it searched."""

    text: str
    line: int
    search: Search
    step: Step | None


def taken_out(text: str, path: str, line: int, case: Case) -> Attempt:
    """Attributes that change from step to step, which a trace would freeze, become arguments of the function."""
    original, changing = text, list[str]()
    others = _frozen.others(text, path, case)
    if is_traced_already(ast.parse(text), line):
        return Attempt()
    while True:
        found = _found(text, line, case, others, changing)
        new = _written(found, case)
        state = _frozen.state_of_new(found.text, new, path, case) if new is not None else None
        if new is not None and state is None:
            return Attempt(new)
        attribute, body = _in_the_way(found, state)
        kinds = Kinds(found.search.fit, map(fit_of, others.values()))
        above = changing_state.taken_out(found.text, kinds, body, attribute) if attribute else None
        if above is None or len(changing) == MOST_STATES:
            return Attempt(why=_why(found, state, original))
        text, line = above.text, LineMap(found.text, above.text).line(found.line)
        changing.append(above.name)


def _in_the_way(found: _Found, state: Frozen | None) -> tuple[str, list[ast.stmt]]:
    """The attribute that a trace would freeze, and the statements of the step that read it."""
    if state is not None and found.step is not None:
        return ("" if state.read.is_name else state.read.name), list(found.step.body)
    refusal = found.search.refusal
    return (refusal.state if refusal is not None else ""), found.search.refused


def _why(found: _Found, state: Frozen | None, original: str) -> str:
    if state is not None:
        return _frozen.told_of(state)
    refusal = found.search.refusal
    if refusal is None:
        return ""
    back = LineMap(found.text, original)
    return dataclasses.replace(refusal, line=back.line(refusal.line)).text


def _found(text: str, line: int, case: Case, others: Mapping[str, ast.Module], changing: Collection[str]) -> _Found:
    forward = is_forward(case)

    def searched(text: str, line: int, traced: bool = False) -> _Found:
        search = Search(ast.parse(text), line, forward, others=others, traced=traced, changing=changing)
        return _Found(text, line, search, search.found())

    found = searched(text, line, is_traced(case))
    other: str | None = None
    if found.step is not None:
        # Nor does a graph hold what an array of indices picks: `y[rows]` is an argument, as a reader would write it.
        other = array_arguments.rows_taken_out(text, found.search.fit, found.step)
    elif not forward and not (found.search.refusal is not None and found.search.refusal.state):
        # What NumPy computes in the step may be an argument of it.
        other = array_arguments.taken_out(text, line)
    if other is None and found.step is None and not forward:
        other = divided_guards.divided(text, found.search)
        early = early_gradients.moved(text, found.search, line) if other is None else None
        if early is not None:
            again = searched(*early)
            return again if again.step is not None else found
    if other is None:
        return found
    again = searched(other, LineMap(text, other).line(line))
    stopped = again.search.refusal is not None and bool(again.search.refusal.state)
    return again if again.step is not None or (found.step is None and stopped) else found


def _written(found: _Found, case: Case) -> str | None:
    document = read(found.text) if found.step is not None else None
    name = "infer" if is_forward(case) else "train_step"
    return written(document, found.step, name) if document is not None and found.step is not None else None


def is_traced_already(module: ast.Module, line: int) -> bool:
    """Whether a traced function of the file calls the function around a line: the loss of a step, say."""
    functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
    around = {node.name for node in functions if node.lineno <= line <= (node.end_lineno or 0)}
    called = {
        called_name(node)
        for function in functions
        if is_traced_function(function)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    return bool(around & called)


def is_traced(case: Case) -> bool:
    """Whether the step is a call of a traced function."""
    return queries.step_kind(case) in ("function", "train-function")


def is_forward(case: Case) -> bool:
    steps = list(case_facts.steps(case))
    return bool(steps) and steps[0].step == "model"
