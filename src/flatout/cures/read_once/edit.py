"""`host-sync`: a tensor whose elements a loop takes one by one is read once, above the loop."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.model.evidence.steps import HostSync
from flatout.source.editing import arrays, case_facts, imports, loop_invariants, statements
from flatout.source.editing.document import Document, read

OFTEN = 2.0
"""Pulls a step from which a line goes through a tensor."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    lines = {
        item.where.line
        for item in case.evidence_of(HostSync)
        if item.per_step >= OFTEN and item.where is not None and case_facts.same_file(path, item.where.file)
    }
    done: set[tuple[str, int]] = set()
    for element in document.all(cst.Subscript):
        loop = _loop_through(document, element) if document.line(element) in lines else None
        if loop is None:
            continue
        tensor = document.text(element.value)
        if (tensor, document.span(loop)[0]) not in done:
            done.add((tensor, document.span(loop)[0]))
            _read_once(document, element.value, loop)
    return document.result()


def _loop_through(document: Document, element: cst.Subscript) -> cst.CSTNode | None:
    """The innermost loop, where it takes another element of the same tensor in each turn. Not in a gradient tape, as a
    gradient would end at the array."""
    loop = next(iter(loop_invariants.loops_around(document, element)), None)
    if not isinstance(loop, cst.For) or not isinstance(element.value, (cst.Name, cst.Attribute)):
        return None
    tensor = document.text(element.value)
    turns = loop_invariants.names_in(document, loop.target)
    indices = set().union(*(loop_invariants.names_in(document, one) for one in element.slice))
    if not turns & indices or document.dotted(element.value) or arrays.from_numpy(document, element.value):
        return None
    if tensor.split(".")[0] in loop_invariants.assigned_in(document, loop):
        return None
    return None if loop_invariants.written(document, tensor, loop) or _in_tape(document, loop) else loop


def _in_tape(document: Document, node: cst.CSTNode) -> bool:
    return any(
        isinstance(holder, cst.With) and any("GradientTape" in document.text(item) for item in holder.items)
        for holder in document.around(node)
    )


def _read_once(document: Document, tensor: cst.BaseExpression, loop: cst.CSTNode) -> None:
    text = document.text(tensor)
    name = arrays.free_name(document, tensor, "values")
    read_whole = imports.spell(document, "numpy.asarray", loop)
    statements.before(document, loop, f"{name} = {read_whole}({text})")
    start, end = document.span(loop)
    for element in document.all(cst.Subscript):
        first, last = document.span(element)
        if start <= first and last <= end and document.text(element.value) == text:
            document.replace(*document.span(element.value), name)
            _drop_numpy(document, element)


def _drop_numpy(document: Document, element: cst.Subscript) -> None:
    """`values[i].numpy()` → `values[i]`: an element of an array is a number already."""
    method = document.parent(element)
    call = document.parent(method) if method is not None else None
    if isinstance(method, cst.Attribute) and method.attr.value == "numpy" and isinstance(call, cst.Call):
        document.replace(document.span(element)[1], document.span(call)[1], "")
