"""`no-run-eagerly`: without `run_eagerly=True` in `compile`, without `model.run_eagerly = True`."""

from __future__ import annotations

import libcst as cst

from flatout.cures import _frozen
from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "run_eagerly" in source else None
    if document is None or _frozen.of_keras(source, path, case) is not None:
        return None
    for call in document.all(cst.Call):
        given = calls.keyword(call, "run_eagerly")
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "compile"
        if (
            method
            and not document.dotted(call.func)
            and given is not None
            and calls.literal(given.value) in ("True", "1")
        ):
            calls.drop(document, call, given)
    statements.delete(document, *(assign for assign in document.all(cst.Assign) if _switches(assign)))
    return document.result()


def _switches(assign: cst.Assign) -> bool:
    """`model.run_eagerly = True`"""
    target = assign.targets[0].target
    return (
        len(assign.targets) == 1
        and isinstance(target, cst.Attribute)
        and target.attr.value == "run_eagerly"
        and calls.literal(assign.value) in ("True", "1")
    )
