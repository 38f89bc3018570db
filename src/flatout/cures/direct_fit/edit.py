"""`direct-fit`: `train_on_batch` in place of `fit`, `test_on_batch` in place of `evaluate`, in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.cures._keras_call_edits import Arguments, calls_at, defines, lines_of
from flatout.cures.direct_predict.edit import keep_only
from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import FUNCTIONS, Document, read

_FIT = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle")
_EVALUATE = ("x", "y", "batch_size", "verbose", "sample_weight", "steps")
_DROPPED = {"batch_size", "verbose", "shuffle"}
_AGAINST = ("def train_step(", "use_ema", "stateful=True")
"""`train_on_batch` gives another tuple to a step of one's own, and does not write averaged weights back."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "fit" in source or "evaluate" in source else None
    if document is None or any(defines(case, source, text) for text in _AGAINST):
        return None
    fits, tests = lines_of(case, path, "fit"), lines_of(case, path, "evaluate")
    for call in calls_at(document, fits, "fit", case) if fits else ():
        _train(document, call)
    for call in calls_at(document, tests, "evaluate", case) if tests else ():
        _test(document, call)
    return document.result()


def _test(document: Document, call: cst.Call) -> None:
    arguments = Arguments(call, _EVALUATE)
    used = {"x", "y", "sample_weight", "return_dict"}
    if arguments.only(used | {"batch_size", "verbose"}) and {"x", "y"} <= set(arguments.given):
        _rename(document, call, "test_on_batch")
        _keep(document, call, arguments, used)


def _train(document: Document, call: cst.Call) -> None:
    """Where nothing is asked of what `fit` returns but the values of its only epoch, or nothing at all."""
    arguments = Arguments(call, _FIT)
    used = {"x", "y", "sample_weight"}
    if not arguments.only(used | _DROPPED | {"epochs"}) or not {"x", "y"} <= set(arguments.given):
        return
    given = arguments.given.get("epochs")
    epochs = "1" if given is None else calls.literal(given.value) or document.text(given.value)
    if epochs != "1":
        _train_again(document, call, arguments, epochs)
        return
    asked = _values_asked(document, call)
    if asked is None:
        return
    _rename(document, call, "train_on_batch")
    _keep(document, call, arguments, used)
    if asked or isinstance(document.parent(call), cst.Assign):
        last = max((arguments.given[name] for name in used & set(arguments.given)), key=lambda a: document.span(a))
        document.insert(document.span(last)[1], ", return_dict=True")
    for whole, key, is_list in asked:
        start, end = document.span(whole)
        head = document.text(_holder(whole)) if _holder(whole) is not call else ""
        if head:
            document.replace(start, end, f"[{head}[{key}]]" if is_list else f"{head}[{key}]")
        else:
            document.replace(document.span(call)[1], end, f"[{key}]")


def _train_again(document: Document, call: cst.Call, arguments: Arguments, epochs: str) -> None:
    """`fit(x, y, epochs=n)` as a statement: n times the same batch."""
    statement = statements.holding(document, call)
    alone = isinstance(document.parent(call), cst.Expr) and statement is not None
    if not alone or statement is None or not statements.stands_alone(document, statement):
        return
    kept = [arguments.given[name] for name in ("x", "y", "sample_weight") if name in arguments.given]
    computed = any(_within(document, arg, cst.Call, cst.Await, cst.NamedExpr) for arg in kept)
    if computed or len(document.lines(call)) > 1 or _within(document, arguments.given["epochs"], cst.Call):
        return
    _rename(document, call, "train_on_batch")
    _keep(document, call, arguments, {"x", "y", "sample_weight"})
    start = document.span(call)[0]
    indentation = document.indentation(start)
    document.insert(start, f"for _ in range({epochs}):{document.newline}{indentation}{document.indent}")


def _rename(document: Document, call: cst.Call, name: str) -> None:
    if isinstance(call.func, cst.Attribute):
        document.replace(*document.span(call.func.attr), name)


def _keep(document: Document, call: cst.Call, arguments: Arguments, names: set[str]) -> None:
    """The other arguments go. Those that stay have the same names, and the same places in front, in both methods."""
    kept = [arg for arg in call.args if any(arguments.given.get(name) is arg for name in names)]
    keep_only(document, call, kept)


# ── what is asked of the history ─────────────────────────────────────────────────────────────────────────────────────


Asked = list[tuple[cst.CSTNode, str, bool]]
"""Expressions that read a value of the history: the whole, the key, and whether all epochs are read."""


def _values_asked(document: Document, call: cst.Call) -> Asked | None:
    """Every use of what `fit` returns; None where one of them needs more than the values of an epoch."""
    parent = document.parent(call)
    if isinstance(parent, cst.Expr):
        return []
    if isinstance(parent, cst.Attribute):
        read_here = _read(document, call)
        return [read_here] if read_here is not None and not read_here[2] else None
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0].target
    if not isinstance(target, cst.Name) or _bound_elsewhere(document, target):
        return None
    found: Asked = []
    for name in _loads(document, target):
        use = _read(document, name)
        if use is None or not _same_scope(document, name, target):
            return None
        found.append(use)
    return found


def _bound_elsewhere(document: Document, target: cst.Name) -> bool:
    """Whether the name may also hold something else, which the uses then read."""
    return any(
        isinstance(item.target, cst.Name) and item.target.value == target.value and item.target is not target
        for item in document.all(cst.AssignTarget)
    )


def _loads(document: Document, target: cst.Name) -> Iterator[cst.Name]:
    for name in document.all(cst.Name):
        parent = document.parent(name)
        if name.value != target.value or name is target:
            continue
        if isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.Attribute) and parent.attr is name):
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            continue
        yield name


def _same_scope(document: Document, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    return document.nearest(one, *FUNCTIONS) is document.nearest(other, *FUNCTIONS)


def _read(document: Document, value: cst.CSTNode) -> tuple[cst.CSTNode, str, bool] | None:
    """`value.history["loss"][0]`, or `value.history["loss"]`."""
    attribute = document.parent(value)
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value != "history":
        return None
    item = document.parent(attribute)
    key = _index(item, attribute)
    if key is None or not isinstance(key, cst.SimpleString):
        return None
    assert item is not None
    outer = document.parent(item)
    position = _index(outer, item)
    if position is not None and outer is not None and _number(position) in ("0", "-1"):
        return outer, key.value, False
    return item, key.value, True


def _index(node: cst.CSTNode | None, value: cst.CSTNode) -> cst.BaseExpression | None:
    if not isinstance(node, cst.Subscript) or node.value is not value or len(node.slice) != 1:
        return None
    inner = node.slice[0].slice
    return inner.value if isinstance(inner, cst.Index) else None


def _number(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return f"-{calls.literal(node.expression)}"
    return calls.literal(node)


def _holder(node: cst.CSTNode) -> cst.CSTNode:
    """`value` of `value.history["loss"][0]`."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Attribute) else node


def _within(document: Document, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> bool:
    start, end = document.span(node)
    return any(start <= document.span(item)[0] and document.span(item)[1] <= end for item in document.all(*kinds))
