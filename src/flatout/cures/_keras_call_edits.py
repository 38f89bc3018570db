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
from flatout.source.editing.project import Project

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


_METRICS = ("metrics", "weighted_metrics")
_PLACE_OF_METRICS = 2
"""Of `compile(optimizer, loss, metrics)`."""


def has_metric_of_own(case: Case, source: str, path: str) -> bool:
    """Whether a model is compiled with a function or a class of the program as a metric. `fit` casts floats to those of
    the model before a metric gets them; the methods for one batch hand on targets in doubles as they are."""
    project = _frozen.project_of(source, path, case)
    return any(
        _is_own(inner, project, file)
        for file, module in project.modules.items()
        for given in _metrics(module)
        for inner in ast.walk(given)
    )


def _metrics(module: ast.Module) -> Iterator[ast.expr]:
    """What the calls of a file give as metrics, and what the names in it are assigned."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    found = [item.value for call in calls for item in call.keywords if item.arg in _METRICS]
    found += [
        call.args[_PLACE_OF_METRICS]
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and len(call.args) > _PLACE_OF_METRICS
    ]
    yield from found
    named = {ast.unparse(node) for given in found for node in ast.walk(given) if isinstance(node, ast.Name)}
    named |= {ast.unparse(given) for given in found if isinstance(given, ast.Attribute)}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) in named for target in node.targets):
            yield node.value


def _is_own(node: ast.AST, project: Project, path: str) -> bool:
    if isinstance(node, ast.Lambda):
        return True
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    name = node.id if isinstance(node, ast.Name) else node.attr
    own = name in project.bases or name in project.codes
    return own and not project.dotted(node, path).startswith(("tensorflow.", "keras.", "tf_keras."))


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
