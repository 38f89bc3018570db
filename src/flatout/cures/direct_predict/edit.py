"""`direct-predict`: `predict_on_batch` in place of `predict` in a loop."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts
from flatout.source.editing.document import Document, read

_DROPPED = {"verbose", "batch_size"}


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "predict" in source else None
    if document is None:
        return None
    at = set(case_facts.lines(case, path, "predict-in-loop"))
    for call in document.all(cst.Call):
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "predict"
            and at & set(document.lines(call))
        ):
            _rewrite(document, call)
    return document.result()


def _rewrite(document: Document, call: cst.Call) -> None:
    """Only where `predict` is given nothing but the batch and its size, and prints nothing."""
    named = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    plain = [arg for arg in call.args if arg.keyword is None]
    if not named <= _DROPPED | {"x"} or len(plain) > 3 or any(arg.star for arg in call.args) or not call.args:
        return
    verbose = calls.keyword(call, "verbose") or (plain[2] if len(plain) == 3 else None)
    if verbose is None or calls.literal(verbose.value) not in ("0", "False"):
        return
    kept = [*plain[:1], *filter(None, [calls.keyword(call, "x")])]
    if len(kept) != 1 or not isinstance(call.func, cst.Attribute):
        return
    document.insert(document.span(call.func.attr)[1], "_on_batch")
    rest = [arg for arg in call.args if arg is not kept[0]]
    if not rest:
        return
    if call.args[0] is kept[0] and not any(document.begins_its_line(document.span(arg)[0]) for arg in rest):
        document.replace(document.span(kept[0])[1], document.span(rest[-1])[1], "")
        return
    for arg in rest:
        calls.drop(document, call, arg)
