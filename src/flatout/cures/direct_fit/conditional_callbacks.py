"""`fit(x, y, callbacks=[board] if done else None)`: the call stays where it has callbacks, else it is one update."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from flatout.cures._keras_call_edits import Arguments
from flatout.source.editing import statements
from flatout.source.editing.document import Document

_NOTHING = ("None", "[]", "()")


def divide(
    document: Document, call: cst.Call, arguments: Arguments, used: Sequence[str], dropped: Collection[str]
) -> None:
    """`used`: the arguments that `train_on_batch` takes; `dropped`: those that say nothing to it."""
    given = arguments.given.get("callbacks")
    choice = given.value if given is not None else None
    statement = statements.holding(document, call)
    if not isinstance(choice, cst.IfExp) or not isinstance(document.parent(call), cst.Expr):
        return
    if statement is None or not statements.stands_alone(document, statement):
        return
    if not arguments.only({*used, *dropped, "callbacks", "epochs"}) or not {"x", "y"} <= set(arguments.given):
        return
    epochs = arguments.given.get("epochs")
    if (epochs is not None and document.text(epochs.value) != "1") or not isinstance(call.func, cst.Attribute):
        return
    test, positive = choice.test, document.text(choice.orelse).replace(" ", "") in _NOTHING
    callbacks = choice.body if positive else choice.orelse
    if not positive and document.text(choice.body).replace(" ", "") not in _NOTHING:
        return
    if _computes(document, test):
        return  # it would run before the rows are computed
    start, end = document.span(call)
    texts = (text for text in document.all(cst.SimpleString) if len(document.lines(text)) > 1)
    if any(start <= document.span(text)[0] < end for text in texts):
        return  # its lines may not be indented
    first, last = document.span(choice)
    if document.source[:first].rstrip().endswith("("):  # `callbacks=([board] if done else None)`
        first, last = document.source.rindex("(", 0, first), document.source.index(")", last) + 1
    whole = f"{document.source[start:first]}{_enclosed(document, callbacks)}{document.source[last:end]}"
    whole = whole.replace(document.newline, document.newline + document.indent)
    rows = [arguments.given[name] for name in used if name in arguments.given]
    rows.sort(key=document.span)
    model = document.source[start : document.span(call.func.attr)[0]]  # with the dot, and with parentheses around it
    update = f"{model}train_on_batch({', '.join(map(document.text, rows))})"
    branches = (whole, update) if positive else (update, whole)
    newline = f"{document.newline}{document.indentation(start)}"
    document.replace(
        start,
        end,
        f"if {_enclosed(document, test)}:{newline}{document.indent}{branches[0]}{newline}else:"
        f"{newline}{document.indent}{branches[1]}",
    )


def _enclosed(document: Document, node: cst.BaseExpression) -> str:
    """In parentheses, where it is a tuple, or may be on several lines because of those of the call."""
    text = document.text(node)
    needed = isinstance(node, cst.Tuple) or (len(document.lines(node)) > 1 and not isinstance(node, cst.List))
    return f"({text})" if needed else text


def _computes(document: Document, test: cst.CSTNode) -> bool:
    start, end = document.span(test)
    nodes = document.all(cst.Call, cst.Await, cst.NamedExpr)
    return any(start <= document.span(node)[0] and document.span(node)[1] <= end for node in nodes)
