"""`autotune`: without the options that switch tf.data's tuning and rewrites off."""

from __future__ import annotations

import libcst as cst

from flatout.cures.autotune import SWITCHES
from flatout.model.case import Case
from flatout.source.editing import calls, stages, statements
from flatout.source.editing.document import FUNCTIONS, Document, read

_WRITTEN = tuple(f".{switch}" for switch in (*SWITCHES, "experimental_optimization.autotune"))
"""The last one is how TensorFlow before 2.9 spelled `autotune.enabled`."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "ptions" in source else None
    if document is None:
        return None
    removed = [assign for assign in document.all(cst.Assign) if _switches_off(document, assign)]
    statements.delete(document, *removed, *_empty_options(document, removed))
    return document.result()


def _switches_off(document: Document, assign: cst.Assign) -> bool:
    target = assign.targets[0].target
    return (
        len(assign.targets) == 1
        and isinstance(target, cst.Attribute)
        and document.text(target).endswith(_WRITTEN)
        and calls.literal(assign.value) == "False"
    )


def _empty_options(document: Document, removed: list[cst.Assign]) -> list[cst.BaseSmallStatement]:
    """`options = tf.data.Options()` and `.with_options(options)`, where nothing else is set on them."""
    gone: list[cst.BaseSmallStatement] = []
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
        made = [use for use in uses if _makes_options(document, use) is not None]
        handed = [call for use in uses if (call := _hands_over(document, use)) is not None]
        ours = [use for use in uses if any(use is _root(item) for item in removed)]
        if len(made) != 1 or not handed or len(made) + len(handed) + len(ours) != len(uses) or ours[0] is not root:
            continue  # something else is done with them, or this was seen with the first of several lines
        gone += [item for use in made if (item := _makes_options(document, use)) is not None]
        gone += [item for call in handed if (item := _drop_call(document, call)) is not None]
    return gone


def _root(assign: cst.Assign) -> cst.CSTNode:
    """`options` of `options.autotune.enabled = False`."""
    root: cst.CSTNode = assign.targets[0].target
    while isinstance(root, cst.Attribute):
        root = root.value
    return root


def _makes_options(document: Document, use: cst.Name) -> cst.Assign | None:
    target = document.parent(use)
    assign = document.parent(target) if isinstance(target, cst.AssignTarget) else None
    if (
        isinstance(assign, cst.Assign)
        and len(assign.targets) == 1
        and isinstance(assign.value, cst.Call)
        and document.dotted(assign.value.func) == "tensorflow.data.Options"
        and not assign.value.args
    ):
        return assign
    return None


def _hands_over(document: Document, use: cst.Name) -> cst.Call | None:
    arg = document.parent(use)
    call = document.parent(arg) if isinstance(arg, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
        return call if call.func.attr.value == "with_options" else None
    return None


def _drop_call(document: Document, call: cst.Call) -> cst.Assign | None:
    """`dataset.with_options(options)` → `dataset`; `dataset = dataset.with_options(options)` is to go as a whole."""
    assign = document.parent(call)
    if (
        isinstance(assign, cst.Assign)
        and len(assign.targets) == 1
        and isinstance(call.func, cst.Attribute)
        and document.text(assign.targets[0].target) == document.text(call.func.value)
    ):
        return assign
    start, end = stages.dot_of(document, call), document.span(call)[1]
    rest = document.source[end : document.line_end(end)].strip()
    if document.begins_its_line(start) and (not rest or rest.startswith("#")):
        document.replace(document.line_start(start), document.next_line(end), "")
    else:
        document.replace(start, end, "")
    return None
