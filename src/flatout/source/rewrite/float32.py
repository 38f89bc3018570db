"""`float32`: without the line that makes Keras compute in double precision."""

from __future__ import annotations

import libcst as cst

from flatout.case import Case
from flatout.source.rewrite import calls, statements
from flatout.source.rewrite.document import Document, read

_SWITCHES = (
    "keras.backend.set_floatx",
    "keras.config.set_floatx",
    "keras.config.set_dtype_policy",
    "keras.mixed_precision.set_global_policy",
    "keras.mixed_precision.set_dtype_policy",
)


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "float64" in source else None
    if document is None:
        return None
    statements.delete(document, *(item for item in document.all(cst.Expr) if _switches(document, item.value)))
    return document.result()


def _switches(document: Document, call: cst.BaseExpression) -> bool:
    return (
        isinstance(call, cst.Call)
        and document.dotted(call.func) in _SWITCHES
        and [calls.literal(arg.value) for arg in call.args] == ["'float64'"]
    )
