"""`no-debug`: without the calls that switch debugging on."""

from __future__ import annotations

import libcst as cst

from flatout.cures import _frozen
from flatout.cures.no_debug import SWITCHES, TRACES
from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    left = TRACES if _frozen.of_traced(source, path, case) is not None else ()
    statements.delete(document, *(item for item in document.all(cst.Expr) if _switches(document, item.value, left)))
    return document.result()


def _switches(document: Document, call: cst.BaseExpression, left: tuple[str, ...]) -> bool:
    name = document.dotted(call.func).removeprefix("tensorflow.") if isinstance(call, cst.Call) else ""
    by_argument = SWITCHES.get(name)
    if by_argument is None or name in left or not isinstance(call, cst.Call):
        return False
    return not by_argument or [calls.literal(arg.value) for arg in call.args] == ["True"]
