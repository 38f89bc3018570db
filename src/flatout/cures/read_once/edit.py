"""`host-sync`: a tensor whose elements a loop takes one by one is read once, above the loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.model.case import Case
from flatout.model.evidence.steps import HostSync
from flatout.source.editing import arrays, case_facts, imports, loop_invariants, statements
from flatout.source.editing.document import Document, read

OFTEN = 2.0
"""Pulls a step from which a line goes through a tensor."""
_DISPLAYS = (cst.List, cst.Dict, cst.Tuple, cst.Set, cst.BaseComp)
_CONTAINERS = {"list", "dict", "tuple", "set", "zip", "map", "sorted", "reversed"}
_GROWS = {"append", "extend", "insert", "update", "items", "keys", "values", "setdefault", "pop"}
_NUMBERS = {"float", "int", "bool", "round", "abs", "max", "min", "sum"}
_HANDS_ON = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget)
"""What has an element of an array where it is given one."""


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
    turns = _counted(loop)
    indices = set().union(*(loop_invariants.names_in(document, one) for one in element.slice))
    if not turns & indices or document.dotted(element.value) or arrays.from_numpy(document, element.value):
        return None
    if tensor.split(".")[0] in loop_invariants.assigned_in(document, loop) or _is_container(document, element.value):
        return None
    if not all(_is_read_as_number(document, other) for other in _elements(document, tensor, loop)):
        return None
    return None if loop_invariants.written(document, tensor, loop) or _in_tape(document, loop) else loop


def _counted(loop: cst.For) -> set[str]:
    """The name that counts the turns: what is picked by something else may be picked from a dictionary."""
    source = loop.iter
    called = source.func.value if isinstance(source, cst.Call) and isinstance(source.func, cst.Name) else ""
    target: cst.BaseExpression = loop.target
    if called == "enumerate" and isinstance(target, (cst.Tuple, cst.List)) and target.elements:
        target = target.elements[0].value
    elif called != "range":
        return set()
    return {target.value} if isinstance(target, cst.Name) else set()


def _is_container(document: Document, node: cst.BaseExpression) -> bool:
    """A list, or another thing of Python, which need not be one array."""
    text, value = document.text(node), arrays.only_value(document, node)
    if isinstance(value, cst.Call):
        value = value.func
    if isinstance(value, (*_DISPLAYS, cst.Name)) and (not isinstance(value, cst.Name) or value.value in _CONTAINERS):
        return True
    grown = (call.func for call in document.all(cst.Call) if isinstance(call.func, cst.Attribute))
    return any(one.attr.value in _GROWS and document.text(one.value) == text for one in grown)


def _elements(document: Document, tensor: str, loop: cst.CSTNode) -> Iterator[cst.Subscript]:
    start, end = document.span(loop)
    for element in document.all(cst.Subscript):
        first, last = document.span(element)
        if start <= first and last <= end and document.text(element.value) == tensor:
            yield element


def _is_read_as_number(document: Document, element: cst.Subscript) -> bool:
    """Whether an element of an array does as well: nothing else of a tensor is asked for."""
    inner: cst.CSTNode = element
    holder = document.parent(inner)
    while isinstance(holder, _HANDS_ON):
        inner, holder = holder, document.parent(holder)
    if isinstance(holder, cst.Attribute):
        return inner is element and holder.attr.value == "numpy"
    if isinstance(holder, cst.Arg):
        call = document.parent(holder)
        if not isinstance(call, cst.Call):
            return False
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        return name in _NUMBERS or document.dotted(call.func).startswith(("numpy.", "math.", "tensorflow."))
    if isinstance(holder, cst.Assign):
        return all(isinstance(target.target, cst.Subscript) for target in holder.targets)
    if isinstance(holder, cst.AugAssign):
        return isinstance(holder.target, cst.Subscript)
    return isinstance(holder, (cst.If, cst.IfExp, cst.While, cst.BooleanOperation)) and inner is not element


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
    for element in _elements(document, text, loop):
        document.replace(*document.span(element.value), name)
        _drop_numpy(document, element)


def _drop_numpy(document: Document, element: cst.Subscript) -> None:
    """`values[i].numpy()` → `values[i]`: an element of an array is a number already."""
    method = document.parent(element)
    call = document.parent(method) if method is not None else None
    if isinstance(method, cst.Attribute) and method.attr.value == "numpy" and isinstance(call, cst.Call):
        document.replace(document.span(element)[1], document.span(call)[1], "")
