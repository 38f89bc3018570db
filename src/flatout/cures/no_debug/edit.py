"""`no-debug`: without the calls that switch debugging on."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import Document, read

_SWITCHES = {
    "tensorflow.config.run_functions_eagerly": True,
    "tensorflow.config.experimental_run_functions_eagerly": True,
    "tensorflow.debugging.set_log_device_placement": True,
    "tensorflow.debugging.enable_check_numerics": False,
    "tensorflow.debugging.experimental.enable_dump_debug_info": False,
    "tensorflow.data.experimental.enable_debug_mode": False,
}
"""Whether the switch is turned on by its argument (`True`), or by being called."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    statements.delete(document, *(item for item in document.all(cst.Expr) if _switches(document, item.value)))
    return document.result()


def _switches(document: Document, call: cst.BaseExpression) -> bool:
    by_argument = _SWITCHES.get(document.dotted(call.func)) if isinstance(call, cst.Call) else None
    if by_argument is None or not isinstance(call, cst.Call):
        return False
    return not by_argument or [calls.literal(arg.value) for arg in call.args] == ["True"]
