"""`validation-freq`: `fit(…, epochs=50, validation_data=…)` → `…, validation_freq=5)`."""

from __future__ import annotations

import libcst as cst

from flatout.cures._keras_call_edits import Arguments
from flatout.cures.validation_freq import LOOKS, every
from flatout.model.case import Case
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import Document, read
from flatout.source.editing.tf_functions import called_name

ORDER = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data")
NOT_THESE = ("validation_freq", "initial_epoch")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    at = case_facts.step_lines(case, path)
    document = read(source) if at and "validation_" in source and not any(text in source for text in LOOKS) else None
    if document is None:
        return None
    for call in document.all(cst.Call):
        if called_name(call.func) == "fit" and at & set(document.lines(call)) and not calls.takes_unknown(call):
            _less_often(document, call, every(value))
    return document.result()


def _less_often(document: Document, call: cst.Call, wanted: int) -> None:
    arguments = Arguments(call, ORDER)
    given = arguments.given
    if not arguments.plain or any(name in given for name in NOT_THESE):
        return
    if "validation_data" not in given and "validation_split" not in given:
        return
    epochs = given.get("epochs")
    if epochs is None:  # there is one
        return
    if isinstance(epochs.value, cst.Integer):
        wanted = min(wanted, int(epochs.value.value, 0))
        text = str(wanted)
    elif isinstance(epochs.value, (cst.Name, cst.Attribute, cst.Subscript)):
        text = f"min({wanted}, {document.text(epochs.value)})"
    else:
        return
    if wanted > 1:
        calls.add(document, call, f"validation_freq={text}")
