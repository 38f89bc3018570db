"""Function definitions, and the `tf.function` that decorates or wraps them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.source.editing.document import FUNCTIONS, Document

TRACED = "tensorflow.function"


def definition(document: Document, line: int) -> cst.FunctionDef | None:
    """The function whose `def` or decorator is on this line."""
    for node in document.all(cst.FunctionDef):
        first = min([document.line(node), *(document.line(decorator) for decorator in node.decorators)])
        if first <= line <= document.line(node):
            return node
    return None


def decorator(document: Document, node: cst.FunctionDef) -> cst.Decorator | None:
    """Its `@tf.function` or `@tf.function(…)`."""
    return next((item for item in node.decorators if is_traced(document, item.decorator)), None)


def is_traced(document: Document, node: cst.CSTNode) -> bool:
    """`tf.function`, `tf.function(…)` and `functools.partial(tf.function, …)`."""
    if isinstance(node, cst.Call):
        if document.dotted(node.func) == "functools.partial" and node.args:
            return document.dotted(node.args[0].value) == TRACED
        return document.dotted(node.func) == TRACED
    return document.dotted(node) == TRACED


def wrappings(document: Document, name: str) -> Iterator[cst.Call]:
    """Calls `tf.function(name, …)` and `tf.function(self.name, …)`."""
    for call in document.all(cst.Call):
        if document.dotted(call.func) == TRACED and call.args and called_name(call.args[0].value) == name:
            yield call


def called_name(node: cst.CSTNode) -> str:
    """The last part of `name`, `self.name` or `module.name`."""
    if isinstance(node, cst.Name):
        return node.value
    return node.attr.value if isinstance(node, cst.Attribute) else ""


def parameters(node: cst.FunctionDef) -> list[str]:
    given = node.params
    return [p.name.value for p in (*given.posonly_params, *given.params)]


def takes_any(node: cst.FunctionDef) -> bool:
    """`*args` or `**kwargs`. With `reduce_retracing`, a call with another number of them than before is an IndexError
    in TensorFlow."""
    return isinstance(node.params.star_arg, cst.Param) or node.params.star_kwarg is not None


def within(document: Document, node: cst.FunctionDef, *kinds: type[cst.CSTNode]) -> bool:
    """Whether the body of the function, without nested functions, contains such a node."""
    return any(document.nearest(found, *FUNCTIONS) is node for found in document.all(*kinds))
