"""What a statement of a training step names, changes, hands on and shows, beyond the names that it reads and writes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from flatout.source.editing.dataflow import called_name, reached
from flatout.source.editing.graph_fit import UPDATES, VARIABLES, GraphFit, every, is_tape

_QUIET_BUILTINS = {"float", "int", "bool", "str", "len", "min", "max", "sum", "abs", "round", "list", "tuple", "range"}
_QUIET_PACKAGES = ("numpy.", "time.", "tensorflow.", "keras.", "math.")
_SETTINGS = {"learning_rate", "lr", "name"}
"""Attributes that an update of the weights does not change."""
_TOLD = {"name", "path", "shape", "dtype"}
"""What a variable says of itself, whatever its value."""


def objects(fit: GraphFit, statement: ast.stmt, host: bool) -> tuple[frozenset[str], frozenset[str]]:
    """What a statement names, and what it changes: what it calls a method of, and whose variables it passes on."""
    nodes = list(reached([statement], fit.meant)) if host else list(ast.walk(statement))
    uses: set[str] = set()
    skipped = _named_only(statement)
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _SETTINGS and isinstance(node.ctx, ast.Load):
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in skipped:
            uses |= set(_chains(node, fit))
    changes: set[str] = set()
    if host or updates(statement) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        for call in (node for node in every([statement]) if isinstance(node, ast.Call)):
            changes |= set(_chains(call.func, fit))
        for node in every([statement]):
            if isinstance(node, ast.Attribute) and node.attr in VARIABLES and id(node) not in skipped:
                changes |= set(_chains(node.value, fit))
    return frozenset(uses), frozenset(changes)


def _chains(node: ast.expr, fit: GraphFit) -> Iterator[str]:
    """`self.model.dense` → `self.model.dense`, `self.model`; nothing for what is imported."""
    parts = node
    while isinstance(parts, ast.Attribute):
        parts = parts.value
    if not isinstance(parts, ast.Name) or parts.id in fit.modules:
        return
    while isinstance(node, ast.Attribute):
        yield ast.unparse(node)
        node = node.value
    if isinstance(node, ast.Name) and node.id not in ("self", "cls") and not hasattr(builtins, node.id):
        yield node.id


def handed_on(fit: GraphFit, statement: ast.stmt) -> frozenset[str]:
    """`critic` and `self.target` of `follow(critic, self.target)`. Tensors cannot be changed, and what Python, NumPy or
    TensorFlow are given they leave as it is."""
    found: set[str] = set()
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        dotted = fit.dotted(call.func)
        plain = isinstance(call.func, ast.Name) and not hasattr(builtins, call.func.id)
        if dotted.startswith(_QUIET_PACKAGES) if dotted else not plain:
            continue
        for given in (*call.args, *(item.value for item in call.keywords)):
            if isinstance(given, (ast.Name, ast.Attribute)):
                found.add(ast.unparse(given))
    return frozenset(found)


def _named_only(statement: ast.stmt) -> set[int]:
    """The variables of a model in `for g, v in zip(gradients, model.trainable_variables)`, where the loop asks a
    variable for nothing but its name or its shape."""
    found: set[int] = set()
    for loop in ast.walk(statement):
        if not isinstance(loop, (ast.For, ast.comprehension)):
            continue
        zipped = loop.iter.args if isinstance(loop.iter, ast.Call) and called_name(loop.iter) == "zip" else [loop.iter]
        names = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        for name, given in zip(names, zipped, strict=False):
            if isinstance(name, ast.Name) and isinstance(given, ast.Attribute) and given.attr in VARIABLES:
                asked = [node for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr in _TOLD]
                told = {id(node.value) for node in asked}
                used = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name.id)
                if all(id(node) in told or isinstance(node.ctx, ast.Store) for node in used):
                    found |= {id(inner) for inner in ast.walk(given)}
    return found


def updates(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node.func) in UPDATES for node in ast.walk(statement))


def may_be_python(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether a statement gives the same outside of the graph: it calls no model and draws nothing."""
    if is_tape(statement) or fit.has_tape(statement) or updates(statement):
        return False
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        dotted = fit.dotted(call.func)
        if dotted.startswith(("tensorflow.random.", "keras.random.")):
            return False
        if not dotted.startswith(("tensorflow.", "keras.")) and not fit.makes_data(call):
            return False
    return True


def makes_text(statement: ast.stmt, made: frozenset[str]) -> bool:
    """`f"{loss:.4f}"`, `"%.4f" % loss`, `"{}".format(loss)`: a tensor of a graph has no value to show."""
    for node in ast.walk(statement):
        shown: list[ast.expr] = []
        if isinstance(node, ast.FormattedValue):
            shown = [node.value]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
            shown = [node.right]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            shown = [*node.args, *(item.value for item in node.keywords)] if _is_text(node.func.value) else []
        for part in shown:
            told = {
                id(inner.value) for inner in ast.walk(part) if isinstance(inner, ast.Attribute) and inner.attr in _TOLD
            }
            if any(isinstance(n, ast.Name) and n.id in made and id(n) not in told for n in ast.walk(part)):
                return True
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def computes(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether it may call a model or an op: all calls but those of Python, NumPy and of what makes data."""
    return any(isinstance(node, ast.Call) and not fit.makes_data(node) for node in ast.walk(statement))


def has_effect(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether something but the names it assigns may show that it ran."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            return True
        if not isinstance(node, ast.Call):
            continue
        dotted = f"{fit.dotted(node.func)}."
        quiet = dotted.startswith(_QUIET_PACKAGES) and not dotted.startswith(("numpy.random.", "tensorflow.summary."))
        name = called_name(node.func)
        builtin = isinstance(node.func, ast.Name) and name in _QUIET_BUILTINS
        if not (quiet or builtin or name in ("numpy", "item", "tolist", "astype", "reshape", "mean", "format")):
            return True
    return False
