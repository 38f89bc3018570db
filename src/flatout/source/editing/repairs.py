"""Applies the repairs of `flatout.source.repairs` to a document.

Each function gets the document, the node that the diagnostic is about and the change. It registers its edits with the
document and returns True, or returns False where it is not sure that the edit is right. libcst locates the nodes; an
edit replaces a range of the text, so that comments and formatting stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from flatout.source import repairs
from flatout.source.api_names import canonical_public
from flatout.source.editing import calls, imports, statements
from flatout.source.editing.document import Document


def apply(change: repairs.Change, document: Document, node: cst.CSTNode) -> bool:
    return _APPLY[type(change)](document, node, change)


def _assign_result(document: Document, node: cst.CSTNode, change: repairs.AssignResult) -> bool:
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
        return False
    called = node.value.func
    if not isinstance(called, cst.Attribute) or not isinstance(called.value, cst.Name) or node.value.lpar:
        return False
    document.insert(document.span(node)[0], f"{called.value.value} = ")
    return True


def _decorate(document: Document, node: cst.CSTNode, change: repairs.Decorate) -> bool:
    if not isinstance(node, cst.FunctionDef) or node.decorators or node.asynchronous is not None:
        return False
    start = document.span(node)[0]
    if not document.begins_its_line(start):
        return False
    decorator = _spell(document, change.decorator, node)
    if decorator is None:
        return False
    document.insert(start, f"@{decorator}{document.newline}{document.indentation(start)}")
    return True


def _delete_statement(document: Document, node: cst.CSTNode, change: repairs.DeleteStatement) -> bool:
    small = node if isinstance(node, cst.BaseSmallStatement) else document.nearest(node, cst.Expr, cst.Assign)
    if not isinstance(small, (cst.Expr, cst.Assign)):
        return False
    statements.delete(document, small)
    return True


def _drop_argument(document: Document, node: cst.CSTNode, change: repairs.DropArgument) -> bool:
    given = calls.keyword(node, change.name) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or given is None:
        return False
    calls.drop(document, node, given)
    return True


def _rename(document: Document, node: cst.CSTNode, change: repairs.Rename) -> bool:
    if not isinstance(node, cst.Attribute):
        return False  # a name imported by itself: its import would have to change too
    name = _spell(document, change.to, node)
    if name is None:
        return False
    document.replace(*document.span(node), name)
    return True


def _rename_argument(document: Document, node: cst.CSTNode, change: repairs.RenameArgument) -> bool:
    given = calls.keyword(node, change.name) if isinstance(node, cst.Call) else None
    if given is None or given.keyword is None:
        return False
    document.replace(*document.span(given.keyword), change.to)
    return True


def _rename_method(document: Document, node: cst.CSTNode, change: repairs.RenameMethod) -> bool:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    document.replace(*document.span(node.func.attr), change.to)
    return True


def _set_argument(document: Document, node: cst.CSTNode, change: repairs.SetArgument) -> bool:
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    given = calls.keyword(node, change.name)
    index = change.position
    if given is None and index is not None and len(node.args) > index and node.args[index].keyword is None:
        given = node.args[index]
    value = _spell(document, change.value, node) if change.is_name else change.value
    if value is None:
        return False
    if given is None:
        calls.add(document, node, f"{change.name}={value}")
    else:
        document.replace(*document.span(given.value), value)
    return True


def _swap_stages(document: Document, node: cst.CSTNode, change: repairs.SwapStages) -> bool:
    """The texts of both methods are swapped; what is between them (dots, line breaks, comments) stays."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    inner = node.func.value
    if not isinstance(inner, cst.Call) or not isinstance(inner.func, cst.Attribute) or inner.lpar:
        return False
    second = (document.span(node.func.attr)[0], document.span(node)[1])
    first = (document.span(inner.func.attr)[0], document.span(inner)[1])
    texts = document.source[first[0] : first[1]], document.source[second[0] : second[1]]
    document.replace(*first, texts[1])
    document.replace(*second, texts[0])
    return True


def _wrap(document: Document, node: cst.CSTNode, change: repairs.Wrap) -> bool:
    if not isinstance(node, cst.BaseExpression):
        return False
    start, end = document.span(node)
    function = _spell(document, change.function, node)
    if function is None:
        return False
    document.replace(start, end, f"{function}({document.source[start:end]})")
    return True


_APPLY: dict[type[repairs.Change], Callable[[Document, cst.CSTNode, Any], bool]] = {
    repairs.AssignResult: _assign_result,
    repairs.Decorate: _decorate,
    repairs.DeleteStatement: _delete_statement,
    repairs.DropArgument: _drop_argument,
    repairs.Rename: _rename,
    repairs.RenameArgument: _rename_argument,
    repairs.RenameMethod: _rename_method,
    repairs.SetArgument: _set_argument,
    repairs.SwapStages: _swap_stages,
    repairs.Wrap: _wrap,
}


def _spell(document: Document, wanted: str, node: cst.CSTNode) -> str | None:
    """How the file writes a name. None where no import of the file reaches it: a repair adds no import."""
    known = [canonical_public(binding.stands_for) for binding in imports.bindings(document, node)]
    reached = any(wanted == name or wanted.startswith(f"{name}.") for name in known)
    # `tf.keras.…` reaches Keras where only TensorFlow is imported.
    if not reached and not (wanted.startswith("keras.") and "tensorflow" in known):
        return None
    if wanted == "tensorflow.data.AUTOTUNE":
        return imports.autotune(document, node)
    return imports.spell(document, wanted, node)
