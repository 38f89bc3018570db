"""`threads`: the size of TensorFlow's thread pool for one operation."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, global_settings, imports
from flatout.source.editing.document import read

_SETTING = "tensorflow.config.threading.set_intra_op_parallelism_threads"


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if value.isdigit() and case_facts.is_main(case, path) else None
    if document is None:
        return None
    written = [call for call in document.all(cst.Call) if document.dotted(call.func) == _SETTING and call.args]
    for call in written:
        given = call.args[0].value
        if calls.literal(given) and calls.literal(given) != value:
            document.replace(*document.span(given), value)
    if not written:
        global_settings.after_imports(document, f"{imports.spell(document, _SETTING)}({value})")
    return document.result()
