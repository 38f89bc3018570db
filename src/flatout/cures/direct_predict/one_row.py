"""Calls of `predict` that the run has not come to, and that the source shows to be for one row: a policy that is asked
once the exploring or the training is over."""

from __future__ import annotations

import ast
from collections.abc import Collection

import libcst as cst

from flatout.source.editing import calls
from flatout.source.editing.dataflow import arguments, bound_in
from flatout.source.editing.document import FUNCTIONS, LOOPS, Document

RESHAPES = ("numpy.reshape", "tensorflow.reshape")
EXPANDS = ("numpy.expand_dims", "tensorflow.expand_dims")
ARRAYS = ("numpy.array", "numpy.asarray", "tensorflow.constant", "tensorflow.convert_to_tensor")
NEW_AXES = ("numpy.newaxis", "tensorflow.newaxis")


Model = tuple[cst.CSTNode | None, cst.CSTNode | None, str]
"""The class and the function in which an expression means one object, and the expression."""


def lines(document: Document, seen: Collection[int], served: Collection[cst.Call]) -> set[int]:
    """Lines with such a call, in a loop or a function. `seen`: lines that the run has come to; `served`: calls of
    `predict` that are Keras' own: only what has one of their models is."""
    models = {_model(document, call.func) for call in served} - {None}  # which object it is, has to be plain
    found = set()
    for call in document.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "predict" or not call.args:
            continue
        here, given = document.line(call), call.args[0]
        if here in seen or given.star or given.keyword is not None or _model(document, call.func) not in models:
            continue
        if document.nearest(call, *FUNCTIONS, *LOOPS) is not None and is_one_row(document, given.value):
            found.add(here)
    return found


def _model(document: Document, called: cst.BaseExpression) -> Model | None:
    """`self.model` is one object in its class, `model` in the function that binds it, or in the file."""
    model = called.value if isinstance(called, cst.Attribute) else None
    base: cst.BaseExpression | None = model
    while isinstance(base, cst.Attribute):
        base = base.value
    if model is None or not isinstance(base, cst.Name):
        return None
    holder = document.nearest(base, cst.ClassDef)
    if base.value in ("self", "cls"):
        return holder, None, document.text(model)
    function = document.nearest(base, cst.FunctionDef)
    if function is not None and _binds(document, function, base.value):
        return holder, function, document.text(model)
    return None, None, document.text(model)


def _binds(document: Document, function: cst.FunctionDef, name: str) -> bool:
    indentation, text = document.indentation(document.span(function)[0]), document.text(function)
    module = ast.parse(f"if 1:\n{indentation}{text}" if indentation else text)
    node = next(node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return name in arguments(node) or name in bound_in(node.body)


def is_one_row(document: Document, node: cst.BaseExpression, by_name: bool = True) -> bool:
    if isinstance(node, cst.Name):
        values = _values(document, node) if by_name else []
        return len(values) == 1 and values[0] is not None and is_one_row(document, values[0], by_name=False)
    if isinstance(node, cst.Subscript):
        first = node.slice[0].slice
        return isinstance(first, cst.Index) and _is_new_axis(document, first.value)
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    dotted, given = document.dotted(node.func), [arg.value for arg in node.args if arg.keyword is None]
    named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    if dotted in RESHAPES:
        return _begins_with_one(given[1:2] or [named[name] for name in ("shape", "newshape") if name in named])
    if dotted in EXPANDS:
        axis = given[1] if len(given) > 1 else named.get("axis")
        return axis is not None and calls.literal(axis) == "0"
    if dotted in ARRAYS:
        return bool(given) and isinstance(given[0], cst.List) and len(given[0].elements) == 1 and _is_plain(given[0])
    if dotted or not isinstance(node.func, cst.Attribute):
        return False
    if node.func.attr.value == "astype":
        return is_one_row(document, node.func.value, by_name)
    return node.func.attr.value == "reshape" and _begins_with_one(given)


def _begins_with_one(shape: list[cst.BaseExpression]) -> bool:
    """`1, 4`, `(1, 4)` and `[1, 4]`; a single number may be the length of a vector."""
    if len(shape) == 1 and isinstance(shape[0], (cst.Tuple, cst.List)) and _is_plain(shape[0]):
        shape = [element.value for element in shape[0].elements]
    return len(shape) > 1 and calls.literal(shape[0]) == "1"


def _is_plain(sequence: cst.Tuple | cst.List) -> bool:
    return all(isinstance(element, cst.Element) for element in sequence.elements)


def _is_new_axis(document: Document, node: cst.BaseExpression) -> bool:
    return document.text(node) == "None" or document.dotted(node) in NEW_AXES


def _values(document: Document, name: cst.Name) -> list[cst.BaseExpression | None]:
    """What the function around it, or the file, binds the name to; None for what is no plain assignment."""
    function = document.nearest(name, cst.FunctionDef)
    alike = [node for node in document.all(cst.Name) if node.value == name.value]
    bound = [
        node for node in alike if document.nearest(node, cst.FunctionDef) is function and _is_bound(document, node)
    ]
    if function is not None and any(isinstance(document.parent(node), cst.Param) for node in bound):
        again = [node for node in bound if not isinstance(document.parent(node), cst.Param)]
        if len(again) == 1 and _is_always_before(document, again[0], name, function):
            bound = again  # `state = state[None]`: the argument itself is gone
    return [_value(document, node) for node in bound]


def _is_bound(document: Document, node: cst.Name) -> bool:
    holder = document.parent(node)
    if isinstance(holder, (cst.Param, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName, cst.CompFor)):
        return getattr(holder, "target", getattr(holder, "name", None)) is node
    return document.nearest(node, cst.AssignTarget) is not None and isinstance(holder, (cst.AssignTarget, cst.Element))


def _value(document: Document, node: cst.Name) -> cst.BaseExpression | None:
    target = document.parent(node)
    assign = document.parent(target) if isinstance(target, cst.AssignTarget) else None
    return assign.value if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None


def _is_always_before(document: Document, bound: cst.Name, name: cst.Name, function: cst.FunctionDef) -> bool:
    block = document.nearest(bound, cst.IndentedBlock)
    return block is function.body and document.span(bound) < document.span(name)
