"""Finds calls of `fit`, `predict` and `evaluate` in source that the run has seen to be for single batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

import libcst as cst

from flatout.cures import _frozen, _trial_edit
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall
from flatout.source.editing import case_facts
from flatout.source.editing.document import Document
from flatout.source.editing.models import Models

OFTEN = 3
"""Calls from which a line is worth a change. A scouting run sees the first few of them only."""
TWICE = 2
"""The same for a line of each step, where no more steps than that were seen."""


Served = Literal["single", "few", "apart"]
"""What all calls of a line were for: one batch of arrays, a few in their order, or one batch and at times callbacks."""


def lines_of(case: Case, path: str, method: str, served: Served = "single") -> set[int]:
    """Lines of this file that call the method again and again, each time for one batch of arrays.

    Where one does, so do the others in functions, even if a scouting run has seen few calls of them: an agent that
    mostly explores at first calls its policy hardly ever.
    """
    often = min(OFTEN, max(TWICE, case.steps.count)) if case.steps is not None else OFTEN
    calls: dict[int, int] = {}
    for item in case.evidence_of(KerasCall):
        where = item.where
        if item.method != method or not _is_served(item, served) or where is None or not where.line:
            continue
        if case_facts.same_file(path, where.file) and (item.calls >= often or where.function):
            calls[where.line] = item.calls
    return set(calls) if any(count >= often for count in calls.values()) else set()


def _is_served(item: KerasCall, served: Served) -> bool:
    single = item.single or 0
    if served == "single":
        return item.single == item.calls
    if served == "few":  # rows come and go: some calls have one batch only
        return bool(item.few) and item.few + single == item.calls
    return bool(item.apart and single) and item.apart + single == item.calls


def calls_at(document: Document, lines: set[int], method: str, case: Case, path: str) -> Iterator[cst.Call]:
    """The calls on these lines. Where a line has several, none is taken if the program has a method of that name
    itself: which of them is Keras' own cannot be told, but for `self.predict(…)` of a class that defines it. Nor is any
    taken if one of several objects is not known to be a model: other libraries have a `predict` as well."""
    found = [
        call
        for call in document.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == method and lines & set(document.lines(call))
        if not _is_of_own_class(document, call.func)
    ]
    for call in found:
        rivals = [other for other in found if set(document.lines(other)) & set(document.lines(call))]
        if len(rivals) == 1 or not defines(case, document.source, f"def {method}("):
            alike = method.endswith("_on_batch") or len({_receiver(document, other) for other in rivals}) == 1
            if alike or all(_is_of_model(document, other, case, path) for other in rivals):
                yield call


def _receiver(document: Document, call: cst.Call) -> str:
    return document.text(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _is_of_model(document: Document, call: cst.Call, case: Case, path: str) -> bool:
    models = Models(_frozen.project_of(document.source, path, case))
    return models.is_model(ast.parse(f"({_receiver(document, call)})", mode="eval").body, path, document.line(call))


def _is_of_own_class(document: Document, called: cst.Attribute) -> bool:
    """`self.predict`, in a class that has a method of this name."""
    holder = document.nearest(called, cst.ClassDef) if document.text(called.value) in ("self", "cls") else None
    methods = holder.body.body if holder is not None else ()
    return any(isinstance(node, cst.FunctionDef) and node.name.value == called.attr.value for node in methods)


def defines(case: Case, source: str, text: str) -> bool:
    """Whether this text stands anywhere in the program."""
    return text in source or any(text in other for _, other in _trial_edit.sources(case))


class Arguments:
    """The arguments of one call by their names."""

    def __init__(self, call: cst.Call, order: tuple[str, ...]) -> None:
        self.plain = not any(arg.star for arg in call.args)
        self.given: dict[str, cst.Arg] = dict(zip(order, (a for a in call.args if a.keyword is None), strict=False))
        for arg in call.args:
            if arg.keyword is not None:
                self.given[arg.keyword.value] = arg
        if sum(arg.keyword is None for arg in call.args) > len(order):
            self.plain = False

    def only(self, names: set[str]) -> bool:
        return self.plain and set(self.given) <= names
