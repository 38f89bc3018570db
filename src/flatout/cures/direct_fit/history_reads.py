"""What a program reads of the `History` that `fit` returns, and leaves on the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst

from flatout.source.editing import calls
from flatout.source.editing.document import FUNCTIONS, Document

_OF_A_MODEL = re.compile(r"(?<!\bself)\.history\s*\.\s*(history|epoch|params)\b")
"""`agent.model.history.history`; `self.history` is what a program has kept itself."""


class Read(NamedTuple):
    """`history.history["loss"][-1]`."""

    whole: cst.CSTNode
    of: cst.CSTNode
    """`history`, or the call of `fit` itself."""
    key: str
    """As written, `"loss"`."""
    position: str
    """`-1`; empty where the values of all epochs are read."""


def reads(document: Document, call: cst.Call) -> list[Read] | None:
    """Every use of what `fit` returns; None where one of them needs more than the values of the epochs."""
    parent = document.parent(call)
    if isinstance(parent, cst.Expr):
        return []
    if isinstance(parent, cst.Attribute):
        read_here = _read(document, call)
        if read_here is None or document.span(read_here.whole)[0] != document.span(call)[0]:
            return None  # there are parentheses in between: `(model.fit(x, y)).history["loss"]`
        return [read_here]
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0].target
    if not isinstance(target, cst.Name) or _bound_elsewhere(document, target):
        return None
    found: list[Read] = []
    for name in _loads(document, target):
        use = _read(document, name)
        if use is None or not _same_scope(document, name, target):
            return None
        found.append(use)
    return found


def left_on_model(texts: Iterable[str], model: str) -> bool:
    """Whether the program reads `model.history`, which `fit` sets and `train_on_batch` does not."""
    name = model.rpartition(".")[2]
    read = re.compile(rf"(?<!\w){re.escape(name)}\s*\.\s*history\b")
    return any(read.search(text) or _OF_A_MODEL.search(text) for text in texts)


def _bound_elsewhere(document: Document, target: cst.Name) -> bool:
    """Whether the name may also hold something else, which the uses then read."""
    return any(
        isinstance(document.parent(name), cst.AssignTarget) and name is not target for name in _named(document, target)
    )


def _named(document: Document, target: cst.Name) -> Iterator[cst.Name]:
    """This name, in the function that binds it; that of a module anywhere in its file."""
    function = document.nearest(target, *FUNCTIONS)
    for name in document.all(cst.Name):
        if name.value == target.value and (function is None or function in document.around(name)):
            yield name


def _loads(document: Document, target: cst.Name) -> Iterator[cst.Name]:
    for name in _named(document, target):
        parent = document.parent(name)
        if name is target or isinstance(parent, cst.AssignTarget):
            continue
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            continue
        yield name


def _same_scope(document: Document, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    return document.nearest(one, *FUNCTIONS) is document.nearest(other, *FUNCTIONS)


def _read(document: Document, value: cst.CSTNode) -> Read | None:
    """`value.history["loss"][0]`, or `value.history["loss"]`."""
    attribute = document.parent(value)
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value != "history":
        return None
    item = document.parent(attribute)
    key = _index(item, attribute)
    if item is None or not isinstance(key, cst.SimpleString):
        return None
    outer = document.parent(item)
    position = _index(outer, item)
    number = _number(position) if position is not None else ""
    if outer is not None and number:
        return Read(outer, value, key.value, number)
    return Read(item, value, key.value, "")


def _index(node: cst.CSTNode | None, value: cst.CSTNode) -> cst.BaseExpression | None:
    if not isinstance(node, cst.Subscript) or node.value is not value or len(node.slice) != 1:
        return None
    inner = node.slice[0].slice
    return inner.value if isinstance(inner, cst.Index) else None


def _number(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return f"-{calls.literal(node.expression)}"
    return calls.literal(node) if isinstance(node, cst.Integer) else ""
