"""Small helpers for Python syntax trees: the arguments of a call, constants, the names in an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def last_name(node: ast.AST) -> str:
    """`b` of `a.b` and of `b`."""
    if type(node) is ast.Attribute:
        return node.attr
    return node.id if type(node) is ast.Name else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument given by position or by name."""
    found = keyword(call, name)
    if found is not None:
        return found
    given = call.args[: position + 1]
    return (
        given[position] if len(given) > position and not any(isinstance(item, ast.Starred) for item in given) else None
    )


def takes_unknown(call: ast.Call) -> bool:
    """`*rest` or `**settings` may contain any argument."""
    return any(item.arg is None for item in call.keywords) or any(isinstance(item, ast.Starred) for item in call.args)


def constant(node: ast.AST | None) -> object:
    """The value of a literal (numbers, text, True, None, also `-1`); the class `object` for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) else object
    return object


def called(call: ast.Call) -> str:
    return last_name(call.func)


def stored_names(node: ast.AST) -> set[str]:
    """Names that anything inside a node assigns to."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def loaded_names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def nested_calls(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
