"""Whether callers notice that a function is decorated with `@tf.function`: by what it gives back, and by what it is
given.

A graph gives back tensors in place of Python values. It makes the variables of its first call only: a function that is
given another model or optimizer later raises then.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator

from flatout.source.editing.dataflow import LOOPS, arguments, bound_in, called_name, has_no_hash, within
from flatout.source.editing.project import Code, Project

_OF_OBJECTS = {
    *("trainable_variables", "trainable_weights", "apply_gradients", "apply", "minimize", "variables", "weights"),
    *("update_state", "optimizer", "layers"),
}
"""Attributes that arguments with variables are asked for."""
_GIVES_PYTHON = {"len", "int", "float", "str", "bool", "round", "format", "isinstance"}


def reason(project: Project, code: Code) -> str | None:
    """Why the decorator alone would be noticed; None where nothing speaks against it."""
    if isinstance(code.node, ast.Lambda):
        return None
    holders = (node for node in ast.walk(project.modules[code.path]) if isinstance(node, ast.ClassDef))
    if code.holder and any(node.name == code.holder and has_no_hash(node) for node in holders):
        return f"objects of {code.holder} cannot be hashed, so that TensorFlow keeps no graph for one"
    return next(_python_results(code), None) or next(several_objects(project, code), None)


def _python_results(code: Code) -> Iterator[str]:
    for node in within(code.body):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in _parts(node.value):
                if _is_python(part):
                    text = ast.unparse(part)[:40]
                    yield f"line {node.lineno} returns {text}: a graph would give back a tensor in its place"


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, (ast.Tuple, ast.List)):
        for part in value.elts:
            yield from _parts(part)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _parts(part)
    else:
        yield value


def _is_python(value: ast.expr) -> bool:
    """A number, a text, a flag, or the size of something."""
    if isinstance(value, ast.Constant):
        return value.value is not None
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _GIVES_PYTHON
    return isinstance(value, ast.JoinedStr)


# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def several_objects(project: Project, code: Code, among: Collection[str] | None = None) -> Iterator[str]:
    """Arguments with variables that are another object in another call. `among`: of these arguments alone."""
    taken = arguments(code.node)
    objects = {name for name in taken if name != code.this and has_variables(code, name)}
    if among is not None:
        objects &= set(among)
    if not objects:
        return
    given: dict[str, set[str]] = {}
    for path, module in project.modules.items():
        for call, loops in _calls(module, code.node.name if not isinstance(code.node, ast.Lambda) else ""):
            bound = isinstance(call.func, ast.Attribute) and bool(code.this)
            pairs = [*zip(taken[1:] if bound else taken, call.args, strict=False)]
            pairs += [(item.arg or "", item.value) for item in call.keywords]
            for name, value in pairs:
                if name not in objects:
                    continue
                where = f"{os.path.basename(path)}:{call.lineno}"
                if isinstance(value, ast.Name) and any(value.id in bound_in([loop]) for loop in loops):
                    yield _told(name, where)
                texts = given.setdefault(name, set())
                texts.add(ast.unparse(value))
                if len(texts) > 1:
                    yield _told(name, where)


def _told(name: str, where: str) -> str:
    return f"its argument {name} is another object in another call ({where}), whose variables a graph would not make"


def has_variables(code: Code, name: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _OF_OBJECTS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for part in code.body
        for node in ast.walk(part)
    )


def _calls(module: ast.Module, name: str) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    """The calls of a function, with the loops around each in its own scope or further out."""
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(module, [])]
    while waiting:
        node, loops = waiting.pop()
        if isinstance(node, ast.Call) and called_name(node.func) == name:
            yield node, loops
        inner = [*loops, node] if isinstance(node, LOOPS) else loops
        waiting.extend((child, inner) for child in ast.iter_child_nodes(node))
