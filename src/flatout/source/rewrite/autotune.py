"""`autotune`: without the options that switch tf.data's tuning and rewrites off."""

from __future__ import annotations

import libcst as cst

from flatout.case import Case
from flatout.source.rewrite import calls, stages, statements
from flatout.source.rewrite.document import FUNCTIONS, Document, read

_SWITCHES = (
    ".autotune.enabled",
    ".experimental_optimization.apply_default_optimizations",
    ".experimental_optimization.map_parallelization",
    ".experimental_optimization.map_and_batch_fusion",
    ".experimental_optimization.inject_prefetch",
    ".experimental_optimization.autotune",
)


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "ptions" in source else None
    if document is None:
        return None
    removed: list[cst.Assign] = []
    for assign in document.all(cst.Assign):
        target = assign.targets[0].target
        if (
            len(assign.targets) == 1
            and isinstance(target, cst.Attribute)
            and document.text(target).endswith(_SWITCHES)
            and calls.literal(assign.value) == "False"
        ):
            statements.delete(document, assign)
            removed.append(assign)
    _without_empty_options(document, removed)
    return document.result()


def _without_empty_options(document: Document, removed: list[cst.Assign]) -> None:
    """`options = tf.data.Options()` and `.with_options(options)`, where nothing else is set on them."""
    for assign in removed:
        root = _root(assign)
        if not isinstance(root, cst.Name):
            continue
        scope = document.nearest(assign, *FUNCTIONS)
        uses = [
            node
            for node in document.all(cst.Name)
            if node.value == root.value and document.nearest(node, *FUNCTIONS) is scope
        ]
        made = [use for use in uses if _makes_options(document, use)]
        handed = [use for use in uses if _hands_over(document, use) is not None]
        ours = [use for use in uses if any(use is _root(item) for item in removed)]
        if len(made) != 1 or not handed or len(made) + len(handed) + len(ours) != len(uses):
            continue
        if ours[0] is not root:
            continue  # done with the first of several
        target = document.parent(made[0])
        statements.delete(document, document.parent(target))  # type: ignore[arg-type]
        for use in handed:
            _drop_call(document, _hands_over(document, use))


def _root(assign: cst.Assign) -> cst.CSTNode:
    """`options` of `options.autotune.enabled = False`."""
    root: cst.CSTNode = assign.targets[0].target
    while isinstance(root, cst.Attribute):
        root = root.value
    return root


def _makes_options(document: Document, use: cst.Name) -> bool:
    target = document.parent(use)
    assign = document.parent(target) if isinstance(target, cst.AssignTarget) else None
    return (
        isinstance(assign, cst.Assign)
        and len(assign.targets) == 1
        and isinstance(assign.value, cst.Call)
        and document.dotted(assign.value.func) == "tensorflow.data.Options"
        and not assign.value.args
    )


def _hands_over(document: Document, use: cst.Name) -> cst.Call | None:
    arg = document.parent(use)
    call = document.parent(arg) if isinstance(arg, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
        return call if call.func.attr.value == "with_options" else None
    return None


def _drop_call(document: Document, call: cst.Call | None) -> None:
    """`dataset.with_options(options)` → `dataset`; `dataset = dataset.with_options(options)` → nothing."""
    if call is None or not isinstance(call.func, cst.Attribute):
        return
    assign = document.parent(call)
    if isinstance(assign, cst.Assign) and len(assign.targets) == 1:
        target = document.parent(assign)
        if target is not None and document.text(assign.targets[0].target) == document.text(call.func.value):
            statements.delete(document, assign)
            return
    start = stages.dot_of(document, call)
    if document.begins_its_line(start):
        start = document.line_start(start) - len(document.newline)
        end = document.span(call)[1]
        document.replace(start, document.line_end(end) if document.source[end : end + 1] != ")" else end, "")
        return
    document.replace(start, document.span(call)[1], "")
