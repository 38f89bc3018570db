"""Whether callers notice that a function is decorated with `@tf.function`: by what it gives back, and by what it is
given.

A graph gives back tensors in place of Python values. It makes the variables of its first call only: a function that is
given another model or optimizer later raises then.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator

from flatout.source.editing import python_values, several_objects
from flatout.source.editing.dataflow import arguments, has_no_hash, within
from flatout.source.editing.project import Code, Project

_OF_OBJECTS = {
    *("trainable_variables", "trainable_weights", "apply_gradients", "apply", "minimize", "variables", "weights"),
    *("update_state", "optimizer", "layers"),
}
"""Attributes that arguments with variables are asked for."""


def reason(project: Project, code: Code) -> str | None:
    """Why the decorator alone would be noticed; None where nothing speaks against it."""
    if isinstance(code.node, ast.Lambda):
        return None
    holders = (node for node in ast.walk(project.modules[code.path]) if isinstance(node, ast.ClassDef))
    if code.holder and any(node.name == code.holder and has_no_hash(node) for node in holders):
        return f"objects of {code.holder} cannot be hashed, so that TensorFlow keeps no graph for one"
    return next(_python_results(project, code), None) or next(several(project, code), None)


def _python_results(project: Project, code: Code) -> Iterator[str]:
    modules = project.imported[code.path]
    known = python_values.names([part for part in code.body if isinstance(part, ast.stmt)], modules)
    for node in within(code.body):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in _parts(node.value):
                if python_values.is_python(part, modules, known):
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


# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def several(project: Project, code: Code, called: str = "", among: Collection[str] | None = None) -> Iterator[str]:
    """Arguments with variables that are another object in another call. `called`: the name of the traced function,
    where that is not its own; `among`: of these arguments alone."""
    if isinstance(code.node, ast.Lambda):
        return
    objects = {name for name in arguments(code.node) if name != code.this and has_variables(code, name)}
    if among is not None:
        objects &= set(among)
    for other in several_objects.others(project.modules, code.node, objects, called):
        where = f"{os.path.basename(other.path)}:{other.line}"
        yield (
            f"its argument {other.name} is another object in another call ({where}), whose variables a graph would "
            "not make"
        )


def has_variables(code: Code, name: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _OF_OBJECTS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for part in code.body
        for node in ast.walk(part)
    )
