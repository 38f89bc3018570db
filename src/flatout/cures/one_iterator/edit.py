"""`one-iterator`: `fit(train, …)` → `fit(train.repeat(), …, steps_per_epoch=len(train))`."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, stages
from flatout.source.editing.document import Document, read
from flatout.source.editing.tf_functions import called_name

_OF_DATASETS = ("batch", "cache", "interleave", "map", "padded_batch", "prefetch", "with_options")
"""Methods that arrays do not have."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    at = case_facts.step_lines(case, path)
    document = read(source) if at and "fit" in source and "distribute" not in source else None
    if document is None:
        return None
    for call in document.all(cst.Call):
        if called_name(call.func) == "fit" and at & set(document.lines(call)) and not calls.takes_unknown(call):
            _repeat(document, call, _iterates(document, call, case, path))
    return document.result()


def _iterates(document: Document, call: cst.Call, case: Case, path: str) -> bool:
    """Whether the run has seen this call go over pipelines of the program alone: Keras makes some of arrays as well."""
    found = [
        pipeline
        for pipeline in case.pipelines
        if pipeline.where is not None
        and case_facts.same_file(path, pipeline.where.file)
        and pipeline.where.line in document.lines(call)
    ]
    return bool(found) and all(any(not stage.detail.by_keras for stage in one.stages) for one in found)


def _repeat(document: Document, call: cst.Call, seen: bool) -> None:
    """Where what is fitted to is the name of a dataset, without labels beside it, and the number of steps is not given.
    `seen`: whether the run has shown that it is one. Else its source has to."""
    given = calls.keyword(call, "x") or next((arg for arg in call.args if arg.keyword is None), None)
    plain = [arg for arg in call.args if arg.keyword is None]
    if given is None or not isinstance(given.value, (cst.Name, cst.Attribute)) or len(plain) > 1:
        return
    if any(calls.keyword(call, name) for name in ("y", "steps_per_epoch", "batch_size")):
        return
    text = document.text(given.value)
    if not seen and not _is_dataset(document, text):
        return
    document.insert(document.span(given.value)[1], ".repeat()")
    calls.add(document, call, f"steps_per_epoch=len({text})")


def _is_dataset(document: Document, text: str) -> bool:
    """Whether all that is assigned to a name in this file are stages of tf.data."""
    assigned = [
        assign.value
        for assign in document.all(cst.Assign)
        if any(document.text(target.target) == text for target in assign.targets)
    ]
    return bool(assigned) and all(_is_stage(document, value) for value in assigned)


def _is_stage(document: Document, value: cst.BaseExpression) -> bool:
    while isinstance(value, cst.Call):
        if document.dotted(value.func).startswith("tensorflow.data."):
            return True
        if not isinstance(value.func, cst.Attribute):
            return False
        if stages.method(value) in _OF_DATASETS:
            return True
        value = value.func.value
    return False
