"""`no-debug`: without the calls that switch debugging on."""

from __future__ import annotations

import libcst as cst

from flatout.cures.no_debug import SWITCHES
from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    statements.delete(document, *(item for item in document.all(cst.Expr) if _switches(document, item.value)))
    return document.result()


def _switches(document: Document, call: cst.BaseExpression) -> bool:
    name = document.dotted(call.func).removeprefix("tensorflow.") if isinstance(call, cst.Call) else ""
    by_argument = SWITCHES.get(name)
    if by_argument is None or not isinstance(call, cst.Call):
        return False
    return not by_argument or [calls.literal(arg.value) for arg in call.args] == ["True"]
