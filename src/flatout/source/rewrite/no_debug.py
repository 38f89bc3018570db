"""`no-debug`: without the calls that switch debugging on."""

from __future__ import annotations

import libcst as cst

from flatout.case import Case
from flatout.source.rewrite import calls, statements
from flatout.source.rewrite.document import read

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
    for statement in document.all(cst.Expr):
        call = statement.value
        if not isinstance(call, cst.Call):
            continue
        by_argument = _SWITCHES.get(document.dotted(call.func))
        if by_argument is None:
            continue
        if not by_argument or [calls.literal(arg.value) for arg in call.args] == ["True"]:
            statements.delete(document, statement)
    return document.result()
