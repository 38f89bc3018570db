"""Traces parts of a step that cannot be traced as a whole: the calls of its models, the updates of its weights."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from flatout.source.editing import imports, tf_functions
from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, called_name
from flatout.source.editing.document import read
from flatout.source.editing.graph_fit import GraphFit, is_traced


def trace_model(text: str, line: int) -> str | None:
    """The text with the `call` of a model that is called on this line traced, right behind the line that makes it."""
    module = ast.parse(text)
    for name in _called(module, line):
        made = _made(module, name)
        document = read(text) if made is not None and _can_be_traced(module, made) else None
        if document is None or made is None:
            continue
        last = _completed(module, made, name)
        end = document.line_end(document.offset(last.end_lineno or last.lineno))
        margin = document.indentation(document.offset(made.lineno))
        traced = imports.spell(document, tf_functions.TRACED)
        relaxed = ", reduce_retracing=True" if _shapes_may_be_unknown(module, made) else ""
        document.insert(end, f"{document.newline}{margin}{name}.call = {traced}({name}.call{relaxed})")
        return document.result()
    return None


def _completed(module: ast.Module, made: ast.Assign, name: str) -> ast.stmt:
    """The last of the statements right behind it that add layers: `model.add(…)`."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list) and made in body:
            last: ast.stmt = made
            for statement in body[body.index(made) + 1 :]:
                value = statement.value if isinstance(statement, ast.Expr) else None
                if not isinstance(value, ast.Call) or ast.unparse(value.func) != f"{name}.add":
                    break
                last = statement
            return last
    return made


def _called(module: ast.Module, line: int) -> list[str]:
    """What a statement on this line calls: `model`, `self.actor`. Nothing in a graph or in a layer."""
    functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    if any(is_traced(node) or node.name in ("call", "__call__") for node in around):
        return []
    calls = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    calls.sort(key=lambda node: (node.lineno != line, (node.end_lineno or 0) - node.lineno))
    return list(dict.fromkeys(ast.unparse(node.func) for node in calls if _is_object(node.func)))


def _is_object(node: ast.expr) -> bool:
    """`model`, or `self.model`."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Name)


def _made(module: ast.Module, name: str) -> ast.Assign | None:
    """The one statement of the file, outside of loops, that binds a name to what a call returns."""
    looped = {id(inner) for loop in ast.walk(module) if isinstance(loop, LOOPS) for inner in ast.walk(loop)}
    found: list[ast.Assign] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == f"{name}.call" and isinstance(node.ctx, ast.Store):
            return None
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(ast.unparse(part) == name for target in targets for part in ast.walk(target)):
            continue
        if not isinstance(node, ast.Assign) or len(targets) != 1 or ast.unparse(targets[0]) != name:
            return None
        found.append(node)
    if len(found) != 1 or id(found[0]) in looped or not isinstance(found[0].value, ast.Call):
        return None
    return found[0]


def _can_be_traced(module: ast.Module, made: ast.Assign) -> bool:
    """False for a class of this file whose `call` does what a graph cannot hold, and for what is no model."""
    fit = GraphFit(module)
    assert isinstance(made.value, ast.Call)
    dotted = fit.dotted(made.value.func)
    if dotted.startswith(("numpy.", "tensorflow.function")) or ".losses." in dotted or ".optimizers." in dotted:
        return False
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name == called_name(made.value.func):
            calls = [item for item in node.body if isinstance(item, FUNCTIONS) and item.name == "call"]
            return bool(calls) and all(fit.obstacle(item.body, frozenset({"call"})) is None for item in calls)
    return True


def _shapes_may_be_unknown(module: ast.Module, made: ast.Assign) -> bool:
    """Whether it is a model of Keras' own layers, or a class of this file that does not compute with shapes."""
    fit = GraphFit(module)
    assert isinstance(made.value, ast.Call)
    if fit.dotted(made.value.func).startswith(("tensorflow.", "keras.", "tf_keras.")):
        return True
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    own = any(node.name == called_name(made.value.func) for node in classes)
    calls = (inner for item in classes for inner in item.body if isinstance(inner, FUNCTIONS) and inner.name == "call")
    if any(call.args.vararg is not None or call.args.kwarg is not None for call in calls):
        return False  # another number of arguments is an IndexError then
    attributes = (node for item in classes for node in ast.walk(item) if isinstance(node, ast.Attribute))
    return own and not any(node.attr in ("shape", "get_shape") for node in attributes)


def models_on(text: str, lines: Sequence[int]) -> list[tuple[int, str]]:
    """The lines with the objects that are called on them, for a hint."""
    module = ast.parse(text)
    return [(line, name) for line in lines for name in _called(module, line)[:1]]
