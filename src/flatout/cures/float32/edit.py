"""`float32`: without the lines that make Keras compute in double precision."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import Document, read

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
    for call in document.all(cst.Call):
        given = calls.keyword(call, "dtype")
        if given is None or not document.dotted(call.func).startswith("keras.layers."):
            continue
        if calls.literal(given.value) == "'float64'":
            document.replace(*document.span(given.value), document.text(given.value).replace("float64", "float32"))
    return document.result()


def _switches(document: Document, call: cst.BaseExpression) -> bool:
    return (
        isinstance(call, cst.Call)
        and document.dotted(call.func) in _SWITCHES
        and [calls.literal(arg.value) for arg in call.args] == ["'float64'"]
    )
