"""`unroll`: the argument of the layers that were seen to go through a few time steps, always as many."""

from __future__ import annotations

import libcst as cst

from flatout.cures.unroll import LAYERS, short_layers
from flatout.model.case import Case
from flatout.model.evidence.program import RecurrentLayer
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    short = _lines(path, short_layers(case))
    others = _lines(path, [item for item in case.evidence_of(RecurrentLayer) if item not in short_layers(case)])
    document = read(source) if short - others else None  # a line that also makes longer ones is left alone
    if document is None:
        return None
    for call in document.all(cst.Call):
        if _name(call) in LAYERS and set(document.lines(call)) & (short - others):
            calls.set_argument(document, call, "unroll", "True")
    return document.result()


def _lines(path: str, layers: list[RecurrentLayer]) -> set[int]:
    return {
        item.where.line
        for item in layers
        if item.where is not None and item.where.line and case_facts.same_file(path, item.where.file)
    }


def _name(call: cst.Call) -> str:
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return call.func.value if isinstance(call.func, cst.Name) else ""
