"""`validation-batch`: `fit(…, batch_size=32, validation_data=…)` → `…, validation_batch_size=128)`."""

from __future__ import annotations

import libcst as cst

from flatout.cures._keras_call_edits import Arguments
from flatout.cures.validation_batch import TIMES
from flatout.model.case import Case
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import Document, read
from flatout.source.editing.tf_functions import called_name

ORDER = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data")
DEFAULT = 32
LEAVES = ("distribute", "def test_step", "stateful=True")
"""Where one of these stands in a file, it stays as it is."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    at = case_facts.step_lines(case, path)
    document = read(source) if at and "validation_" in source and not any(text in source for text in LEAVES) else None
    if document is None:
        return None
    for call in document.all(cst.Call):
        if called_name(call.func) == "fit" and at & set(document.lines(call)) and not calls.takes_unknown(call):
            _enlarge(document, call)
    return document.result()


def _enlarge(document: Document, call: cst.Call) -> None:
    arguments = Arguments(call, ORDER)
    given = arguments.given
    if not arguments.plain or "validation_steps" in given:
        return
    if "validation_data" not in given and "validation_split" not in given:
        return
    size, now = _size(document, given.get("batch_size")), given.get("validation_batch_size")
    if not size or (now is not None and not isinstance(now.value, (cst.Integer, cst.Name))):
        return
    if now is None:
        calls.add(document, call, f"validation_batch_size={size}")
    elif not (isinstance(now.value, cst.Integer) and size.isdigit() and int(now.value.value, 0) >= int(size)):
        document.replace(*document.span(now.value), size)


def _size(document: Document, trained: cst.Arg | None) -> str:
    """`128` for 32, `4 * batch` for a name; empty where it cannot be said in a few words."""
    if trained is None or (isinstance(trained.value, cst.Name) and trained.value.value == "None"):
        return str(TIMES * DEFAULT)
    if isinstance(trained.value, cst.Integer):
        return str(TIMES * int(trained.value.value, 0))
    named = isinstance(trained.value, (cst.Name, cst.Attribute, cst.Subscript))
    if named and not _may_be_none(document, trained.value):
        return f"{TIMES} * {document.text(trained.value)}"
    return ""


def _may_be_none(document: Document, size: cst.BaseExpression) -> bool:
    """`batch_size=None` among the parameters, or in an assignment: Keras takes its default for it."""
    given: list[tuple[cst.CSTNode, cst.BaseExpression | None]] = [
        *((node.name, node.default) for node in document.all(cst.Param)),
        *((node.target, node.value) for node in document.all(cst.AnnAssign)),
        *((target.target, node.value) for node in document.all(cst.Assign) for target in node.targets),
    ]
    nones = (name for name, value in given if isinstance(value, cst.Name) and value.value == "None")
    return any(document.text(name) == document.text(size) for name in nones)
