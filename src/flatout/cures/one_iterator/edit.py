"""`one-iterator`: `fit(train, …)` → `fit(train.repeat(), …, steps_per_epoch=len(train))`."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import Document, read
from flatout.source.editing.tf_functions import called_name


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    at = case_facts.step_lines(case, path)
    document = read(source) if at and "fit" in source and "distribute" not in source else None
    if document is None:
        return None
    for call in document.all(cst.Call):
        if called_name(call.func) == "fit" and at & set(document.lines(call)) and not calls.takes_unknown(call):
            _repeat(document, call)
    return document.result()


def _repeat(document: Document, call: cst.Call) -> None:
    """Where what is fitted to is a name, without labels beside it, and the number of steps is not given."""
    given = calls.keyword(call, "x") or next((arg for arg in call.args if arg.keyword is None), None)
    plain = [arg for arg in call.args if arg.keyword is None]
    if given is None or not isinstance(given.value, (cst.Name, cst.Attribute)) or len(plain) > 1:
        return
    if any(calls.keyword(call, name) for name in ("y", "steps_per_epoch", "batch_size")):
        return
    text = document.text(given.value)
    document.insert(document.span(given.value)[1], ".repeat()")
    calls.add(document, call, f"steps_per_epoch=len({text})")
