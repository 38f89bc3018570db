"""`steps-per-execution`: the number as an argument of `compile`."""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.model.case import Case
from flatout.source.editing import calls
from flatout.source.editing.compile_calls import compile_calls
from flatout.source.editing.document import read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "compile" in source and value.isdigit() else None
    if document is None or _frozen.batch_callback(source, path, case) is not None:
        return None
    for call in compile_calls(document, path, case):
        calls.set_argument(document, call, "steps_per_execution", value)
    return document.result()
