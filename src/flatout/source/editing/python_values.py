"""Names that statements bind to values of Python: a size, a text, a flag.

A graph gives back tensors. `size = len(rows)` in a traced step would be a tensor behind it, which prints otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from flatout.source.editing.dataflow import bindings, called_name

_GIVE = {"len", "int", "float", "str", "bool", "round", "format", "isinstance", "repr"}
"""Functions of Python whose results are numbers, texts or flags."""
_KEEP_ELEMENTS = {"list", "tuple", "filter", "sorted", "reversed"}
"""Functions of Python that give elements of their last argument."""
_CHANGE = {"update", "setdefault", "pop", "popitem", "clear"}
"""Methods that fill or empty a dictionary."""
_TOLD = {"shape", "ndim", "dtype", "name"}
"""What a tensor tells of itself while it is traced."""


def names(body: Sequence[ast.stmt], modules: Mapping[str, str], around: Collection[str] = ()) -> set[str]:
    """Those that every assignment in these statements binds to such a value. `modules`: what the file imports;
    `around`: names that hold such values before the statements."""
    assigned, changed = _by_name(_assigned(body)), _by_name(_changed(body))
    every = bindings(body)
    known: set[str] = set()
    while True:
        more = {
            name
            for name, values in assigned.items()
            if every.count(name) == len(both := [*values, *changed.get(name, ())])
            and all(is_python(value, modules, {*known, *around}) for value in both)
        }
        if more == known:
            return known
        known = more


def is_python(value: ast.expr, modules: Mapping[str, str], known: Collection[str] = ()) -> bool:
    """Whether an expression is such a value, or holds one. `known`: names that are."""
    if isinstance(value, ast.Constant):
        return value.value is not None
    if isinstance(value, ast.Name):
        return value.id in known
    if isinstance(value, ast.Attribute):
        return value.attr in _TOLD or (value.attr == "rank" and is_python(value.value, modules, known))
    if isinstance(value, ast.Subscript):
        return is_python(value.value, modules, known)
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(is_python(part, modules, known) for part in value.elts)
    if isinstance(value, ast.Dict):
        return any(is_python(part, modules, known) for part in value.values)
    if isinstance(value, ast.UnaryOp):
        return is_python(value.operand, modules, known)
    if isinstance(value, (ast.BinOp, ast.Compare, ast.BoolOp)):
        operands = (part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))
        return all(is_python(part, modules, known) for part in operands)
    if isinstance(value, ast.IfExp):
        return all(is_python(part, modules, known) for part in (value.body, value.orelse))
    if isinstance(value, ast.Call):
        return _call_gives(value, modules, known)
    return isinstance(value, ast.JoinedStr)


def _call_gives(call: ast.Call, modules: Mapping[str, str], known: Collection[str]) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _GIVE and call.func.id not in modules
    if called_name(call) in ("as_list", "get_shape"):
        return True
    root = call.func.value if isinstance(call.func, ast.Attribute) else None
    package = modules.get(root.id, "") if isinstance(root, ast.Name) else ""
    return package in ("math", "numpy") and any(is_python(part, modules, known) for part in call.args)


def _by_name(pairs: Iterable[tuple[str, ast.expr]]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _changed(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """`count += 1`"""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names with what they are assigned, where the assignment says it."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _taken_apart(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _taken_apart(node.target, node.value)


def _taken_apart(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        given = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        values = given if len(given) == len(target.elts) else [value] * len(target.elts)
        for part, item in zip(target.elts, values, strict=True):
            yield from _taken_apart(part, item)


def mixed(body: Sequence[ast.stmt], modules: Mapping[str, str], around: Collection[str] = ()) -> set[str]:
    """Names of dictionaries that these statements make and fill with anything but tensors of their own, or in a way
    that does not show it: `logs["rows"] = len(x)`, `logs.update(more)`."""
    made = {name for name, value in _assigned(body) if isinstance(value, ast.Dict) or ast.unparse(value) == "dict()"}
    nodes = [inner for statement in body for inner in ast.walk(statement)] if made else []
    known, own = {*names(body, modules, around), *around}, set(bindings(body))
    plain: set[int] = set()
    found: set[str] = set()
    for assign in (inner for inner in nodes if isinstance(inner, ast.Assign)):
        outside = isinstance(assign.value, ast.Name) and assign.value.id not in own
        if not outside and not is_python(assign.value, modules, known):
            plain |= {id(target) for target in assign.targets if has_text_key(target)}
    for node in nodes:
        holder = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
        if isinstance(holder, ast.Name) and holder.id in made and id(node) not in plain:
            stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            if stored or (isinstance(node, ast.Attribute) and node.attr in _CHANGE):
                found.add(holder.id)
    return found


def has_text_key(target: ast.AST) -> bool:
    """`logs["loss"]`"""
    key = target.slice if isinstance(target, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def variables(body: Sequence[ast.stmt]) -> set[str]:
    """Names that some assignment binds to variables of a model: a graph would give back the values that they have."""
    return {name for name, value in _assigned(body) if are_variables(value)}


def are_variables(value: ast.expr) -> bool:
    """`model.trainable_variables`, some (`[v for v in net.trainable_variables if …]`), or those of two models."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.Add) and are_variables(value.left) and are_variables(value.right)
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(map(are_variables, value.elts))
    if isinstance(value, (ast.Subscript, ast.Starred)):
        return are_variables(value.value)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return _chosen(value) and are_variables(value.generators[0].iter)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args:
        return value.func.id in _KEEP_ELEMENTS and are_variables(value.args[-1])
    return isinstance(value, ast.Attribute) and value.attr in ("trainable_variables", "trainable_weights")


def _chosen(value: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether it gives elements of what it goes through as they are."""
    target = value.generators[0].target
    named = isinstance(value.elt, ast.Name) and isinstance(target, ast.Name) and value.elt.id == target.id
    return len(value.generators) == 1 and named
