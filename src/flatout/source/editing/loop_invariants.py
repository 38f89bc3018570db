"""Whether something in a loop could be done once before it."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from flatout.source.editing.document import FUNCTIONS, LOOPS, Document


def loops_around(document: Document, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The loops around a node within its function, innermost first."""
    found: list[cst.CSTNode] = []
    for holder in document.around(node):
        if isinstance(holder, (*FUNCTIONS, cst.ClassDef)):
            break
        if isinstance(holder, LOOPS):
            found.append(holder)
    return found


def names_in(document: Document, node: cst.CSTNode) -> set[str]:
    """Variables that an expression reads: the first name of `self.model.x`, no keywords."""
    start, end = document.span(node)
    found = set()
    for name in document.all(cst.Name):
        here = document.span(name)
        if start <= here[0] and here[1] <= end and not _is_label(document, name):
            found.add(name.value)
    return found


def _is_label(document: Document, name: cst.Name) -> bool:
    holder = document.parent(name)
    return (isinstance(holder, cst.Attribute) and holder.attr is name) or (
        isinstance(holder, cst.Arg) and holder.keyword is name
    )


def assigned_in(document: Document, block: cst.CSTNode, without: cst.CSTNode | None = None) -> set[str]:
    """Names that a block assigns to in any way, including nested functions."""
    start, end = document.span(block)
    left_out = document.span(without) if without is not None else (-1, -1)
    found: set[str] = set()
    for node in document.all(
        cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.AsName,
        cst.ImportAlias, cst.FunctionDef, cst.ClassDef, cst.Param, cst.Del,
    ):  # fmt: skip
        here = document.span(node)
        if not (start <= here[0] and here[1] <= end) or left_out[0] <= here[0] < left_out[1]:
            continue
        target = getattr(node, "target", None) or getattr(node, "name", None)
        if isinstance(target, cst.CSTNode):
            found |= _plain_names(document, target)
    return found


def _plain_names(document: Document, target: cst.CSTNode) -> set[str]:
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, (cst.Tuple, cst.List)):
        parts: Iterable[cst.BaseElement] = target.elements
        return set().union(*(_plain_names(document, part.value) for part in parts))
    return set()


def written(document: Document, text: str, block: cst.CSTNode | None = None) -> bool:
    """Whether `text`, its elements or its attributes are assigned to in a block, or anywhere."""
    start, end = document.span(block) if block is not None else (0, len(document.source))
    for node in document.all(
        cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.Del
    ):
        here = document.span(node)
        if not (start <= here[0] and here[1] <= end):
            continue
        target = getattr(node, "target", node)
        for part in [target, *_parts(target)]:
            while isinstance(part, (cst.Subscript, cst.StarredElement, cst.Element)):
                part = part.value
            if document.text(part) == text:
                return True
    return False


def _parts(target: cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for element in target.elements for part in (element.value, *_parts(element.value))]
    return []
