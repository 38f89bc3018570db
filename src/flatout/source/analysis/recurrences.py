"""Loops whose turns need the one before: recurrent networks, sampling, simulation. No edit makes one op of them.

A turn needs the one before where it reads a name that the loop itself sets later: the value is of the last turn. What
only collects results does not count: `array = array.write(i, x)`, `total += x`, `results.append(x)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.source import context
from flatout.source.analysis.syntax import loaded_names, stored_names

_COLLECTS = ("write", "append", "extend")


def is_recurrence(file: str, line: int) -> bool:
    """Whether the innermost loop around this line carries a value from turn to turn. False where it cannot be told."""
    found = context.innermost_loop(file, line)
    module = context.tree(file) if found is not None else None
    if found is None or module is None:
        return False
    loop = next(
        (node for node in ast.walk(module) if isinstance(node, (ast.For, ast.While)) and node.lineno == found.line),
        None,
    )
    return loop is not None and bool(carried(loop))


def carried(loop: ast.For | ast.While) -> set[str]:
    """Names, and attributes of `self`, that a turn reads before it sets them, and that it does set."""
    known = _targets(loop.target) if isinstance(loop, ast.For) else set()
    early: set[str] = set()
    stored: set[str] = set()
    for statement in _simple(loop.body):
        stores = stored_names(statement) | _stored_attributes(statement)
        early |= (_reads(statement) - known) - _collected(statement)
        stored |= stores
        known |= stores
    return early & stored


def _simple(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in their order, those of inner blocks included; inner functions are taken as a whole."""
    for statement in body:
        inner = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
        if not any(inner) or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement
            continue
        head = getattr(statement, "test", None) or getattr(statement, "iter", None)
        if isinstance(head, ast.expr):
            yield ast.copy_location(ast.Expr(head), statement)
        for block in inner:
            yield from _simple(block or [])


def _reads(statement: ast.stmt) -> set[str]:
    names = set(loaded_names(statement))
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.add(statement.target.id)
    return names | {
        ast.unparse(node)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
    }


def _stored_attributes(statement: ast.stmt) -> set[str]:
    return {
        ast.unparse(node)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }


def _collected(statement: ast.stmt) -> set[str]:
    """What a statement only adds to."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id} - loaded_names(statement.value)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return set()
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name):
        return set()
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _COLLECTS:
        receiver = value.func.value
        if isinstance(receiver, ast.Name) and receiver.id == target.id:
            given = set().union(*(loaded_names(item) for item in value.args)) if value.args else set()
            return {target.id} - given
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult)):
        left, right = loaded_names(value.left), loaded_names(value.right)
        if isinstance(value.left, ast.Name) and value.left.id == target.id:
            return {target.id} - right
        if isinstance(value.right, ast.Name) and value.right.id == target.id:
            return {target.id} - left
    return set()


def _targets(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
