"""`no-xla`: a `tf.function` without `jit_compile=True`, `compile` with `jit_compile=False`."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, tf_functions
from flatout.source.editing.compile_calls import compile_calls
from flatout.source.editing.document import read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for call in document.all(cst.Call):
        given = calls.keyword(call, "jit_compile") if tf_functions.is_traced(document, call) else None
        if given is None or calls.literal(given.value) not in ("True", "1"):
            continue
        if len(call.args) == 1 and isinstance(document.parent(call), cst.Decorator):
            document.replace(document.span(call.func)[1], document.span(call)[1], "")  # no empty parentheses
        else:
            calls.drop(document, call, given)
    for call in compile_calls(document, path, case):
        if calls.keyword(call, "jit_compile") is not None or _is_auto(case):
            calls.set_argument(document, call, "jit_compile", "False")  # without it, Keras decides for itself
    return document.result()


def _is_auto(case: Case) -> bool:
    """Whether Keras had the model that was observed compiled by XLA without being asked to."""
    return any(item.step == "fit" and item.jit_compile is True for item in case_facts.steps(case))
