"""`direct-predict`: `predict_on_batch` in place of `predict` in a loop."""

from __future__ import annotations

import libcst as cst

from flatout.cures._keras_call_edits import Arguments, calls_at, lines_of
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import Document, read

_ORDER = ("x", "batch_size", "verbose", "steps")
_DROPPED = {"batch_size", "verbose"}


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "predict" in source else None
    if document is None:
        return None
    seen = lines_of(case, path, "predict")
    if not any(item.single is not None for item in case.evidence_of(KerasCall)):
        seen = set(case_facts.lines(case, path, "predict-in-loop"))  # a case of `check`, or an older one
    for call in calls_at(document, seen, "predict", case) if seen else ():
        _rewrite(document, call)
    return document.result()


def _rewrite(document: Document, call: cst.Call) -> None:
    """Only where `predict` is given nothing but the rows and how to batch and show them."""
    arguments = Arguments(call, _ORDER)
    kept = arguments.given.get("x")
    steps = arguments.given.get("steps")
    if kept is None or not isinstance(call.func, cst.Attribute):
        return
    if not arguments.only({"x", *_DROPPED, "steps"}) or (steps and calls.literal(steps.value) not in ("1", "None")):
        return
    document.insert(document.span(call.func.attr)[1], "_on_batch")
    keep_only(document, call, [kept])


def keep_only(document: Document, call: cst.Call, kept: list[cst.Arg]) -> None:
    """Drop the other arguments."""
    rest = [arg for arg in call.args if arg not in kept]
    if not rest:
        return
    head = call.args[: len(kept)]
    if list(head) == kept and not any(document.begins_its_line(document.span(arg)[0]) for arg in rest):
        document.replace(document.span(kept[-1])[1], document.span(rest[-1])[1], "")
        return
    for arg in rest:
        calls.drop(document, call, arg)
