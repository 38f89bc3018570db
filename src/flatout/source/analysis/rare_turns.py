"""Which code in a loop runs in few of its turns: at each hundredth one, at a checkpoint, at the end of an epoch."""

from __future__ import annotations

import ast
from typing import TypeGuard

from flatout.source.analysis import loops
from flatout.source.analysis.scopes import Loop, Site
from flatout.source.analysis.syntax import constant, last_name, loaded_names

_OFTEN = 10
"""Turns of which one is still often."""


def is_rare(site: Site, loop: Loop) -> bool:
    """Whether a site in a loop runs in few turns: at each n-th one, or where a counter has one value."""
    start, end = loop.lineno, loop.end_lineno or loop.lineno
    return any(
        arm == 0
        and isinstance(statement, ast.If)
        and start <= statement.lineno <= end
        and _holds_seldom(statement, loop, site)
        for statement, arm in site.arms
    )


def _holds_seldom(statement: ast.If, loop: Loop, site: Site) -> bool:
    tests = statement.test.values if _is_all(statement.test) else [statement.test]
    return any(_is_nth(test, site) or _is_one_value(test, loop, site) for test in tests)


def _is_all(test: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _is_nth(test: ast.expr, site: Site) -> bool:
    """`step % every == 0`, `not step % every`, `np.mod(step, every) == 0`"""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        rest: ast.expr = test.operand
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        rest = test.left
    else:
        return False
    if isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mod):
        every = rest.right
    elif isinstance(rest, ast.Call) and last_name(rest.func) == "mod" and len(rest.args) == 2:
        every = rest.args[1]
    else:
        return False
    count = loops.number(every, site)
    return count is None or count > _OFTEN


def _is_one_value(test: ast.expr, loop: Loop, site: Site) -> bool:
    """`turn == 0`, where the loop counts `turn`, also from the start again: `turn = (turn + 1) % turns`"""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    return isinstance(test.left, ast.Name) and test.left.id in site.module.once(_counted, loop)


def _counted(loop: Loop) -> set[str]:
    names: set[str] = set()
    if isinstance(loop, ast.For):
        source = loop.iter
        if isinstance(source, ast.Call) and isinstance(loop.target, ast.Name) and last_name(source.func) in _RANGES:
            names.add(loop.target.id)
        if (
            isinstance(source, ast.Call)
            and isinstance(loop.target, ast.Tuple)
            and last_name(source.func) == "enumerate"
        ):
            names |= {item.id for item in loop.target.elts[:1] if isinstance(item, ast.Name)}
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            names |= {node.target.id} if constant(node.value) == 1 else set()
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _adds_one(node.value):
            names |= {node.targets[0].id} & loaded_names(node.value)
    return names


_RANGES = ("range", "trange")


def _adds_one(value: ast.expr) -> bool:
    """`n + 1`, `(n + 1) % turns`"""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod):
        value = value.left
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and constant(value.right) == 1
