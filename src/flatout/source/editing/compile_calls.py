"""The `compile` calls of the trained model."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import case_facts
from flatout.source.editing.document import Document

_OF_KERAS = {"optimizer", "loss", "metrics", "loss_weights", "run_eagerly", "jit_compile", "steps_per_execution"}


def compile_calls(document: Document, path: str, case: Case) -> list[cst.Call]:
    """All `compile` calls if there is one model, else those of the model that the steps belong to."""
    found = [call for call in document.all(cst.Call) if _compiles(document, call)]
    receivers = {_receiver(document, call) for call in found}
    if len(receivers) < 2:
        return found
    trained = _trained(document, path, case)
    return [call for call in found if _receiver(document, call) in trained]


def _compiles(document: Document, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "compile" or document.dotted(call.func):
        return False  # not `re.compile`
    if isinstance(call.func.value, cst.Call) and getattr(call.func.value.func, "value", "") == "super":
        return False
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return bool(keywords & _OF_KERAS) or any(arg.keyword is None for arg in call.args) or not call.args


def _receiver(document: Document, call: cst.Call) -> str:
    return document.text(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _trained(document: Document, path: str, case: Case) -> set[str]:
    """`model` for a step that was started by `model.fit(…)`."""
    at = case_facts.step_lines(case, path)
    return {
        _receiver(document, call)
        for call in document.all(cst.Call)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("fit", "train_on_batch", "predict", "evaluate")
        and at & set(document.lines(call))
    }
