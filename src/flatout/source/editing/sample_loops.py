"""Loops over the samples of a batch: where they are, what they accumulate, what else they do."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flatout.source.editing.dataflow import FUNCTIONS, arguments, free_names, names_in, within
from flatout.source.editing.document import Document

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module

DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
SIGNS = {ast.Add: "+", ast.Sub: "-"}
_OUTSIDE = {"print", "assign", "assign_add", "assign_sub", "scatter_update", "append", "extend", "update", "add_loss"}
"""Calls with a side effect that every iteration must have."""
_DRAWS = ("random", "dropout", "shuffle")


@dataclass(frozen=True)
class Gathered:
    """`total += term`, `total -= term`, `terms.append(term)`."""

    name: str
    term: ast.expr
    sign: str
    """Empty if the term is appended to a list."""
    statement: ast.stmt


def around(module: ast.Module, line: int) -> Iterator[tuple[ast.For, Scope]]:
    """The loops around a line, innermost first, and the function or the module that each belongs to."""
    found: list[tuple[ast.For, Scope]] = []
    scopes: list[Scope] = [module, *(node for node in ast.walk(module) if isinstance(node, FUNCTIONS))]
    for scope in scopes:
        for node in within(scope.body):
            if isinstance(node, ast.For) and node.lineno <= line <= (node.end_lineno or 0):
                found.append((node, scope))
    return iter(sorted(found, key=lambda pair: -pair[0].lineno))


def is_plain(target: ast.expr) -> bool:
    """A name, or several of them."""
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts)
    )


def gathered(statement: ast.stmt) -> Gathered | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and type(statement.op) in SIGNS:
        return Gathered(statement.target.id, statement.value, SIGNS[type(statement.op)], statement)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        target, value = statement.targets[0], statement.value
        same = isinstance(target, ast.Name) and isinstance(value.left, ast.Name) and value.left.id == target.id
        if isinstance(target, ast.Name) and same and type(value.op) in SIGNS:
            return Gathered(target.id, value.right, SIGNS[type(value.op)], statement)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        one = call.func.attr == "append" and len(call.args) == 1 and not call.keywords
        return Gathered(call.func.value.id, call.args[0], "", statement) if one else None
    return None


def reads_outside(scope: Scope, loop: ast.For, names: Iterable[str]) -> Iterator[ast.AST]:
    """Where names of a scope are read outside of a loop in it: by name, or in a nested definition."""
    wanted, inside = set(names), {id(part) for part in ast.walk(loop)}
    for part in within(scope.body):
        if isinstance(part, ast.Name):
            found = part.id in wanted and isinstance(part.ctx, ast.Load) and id(part) not in inside
        elif isinstance(part, ast.Lambda):
            found = bool(wanted & (set(names_in(part.body)) - set(arguments(part)))) and id(part) not in inside
        else:
            found = isinstance(part, DEFINITIONS) and bool(wanted & set(free_names(part)))
        if found:
            yield part


def is_read_outside(scope: Scope, loop: ast.For, names: Iterable[str]) -> bool:
    """Whether the values of the last iteration are read, or may be, as they belong to another scope."""
    wanted = set(names)
    declared = (part for part in ast.walk(scope) if isinstance(part, ast.Global | ast.Nonlocal))
    return any(wanted & set(part.names) for part in declared) or any(reads_outside(scope, loop, wanted))


def only_computes(statements: Iterable[ast.stmt], *without: str) -> bool:
    """Whether statements do not print, write, draw or yield, or call anything with one of these words in its name."""
    for part in (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Starred):
            return False
        if isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            if called.rpartition(".")[2] in _OUTSIDE or any(word in called.lower() for word in (*_DRAWS, *without)):
                return False
    return True


def span(document: Document, node: ast.expr | ast.stmt) -> tuple[int, int]:
    ends = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    found = []
    for line, column in ends:  # columns count bytes
        here = document.offset(line)
        row = document.source[here : document.line_end(here)]
        found.append(here + len(row.encode()[:column].decode()))
    return found[0], found[1]


def text(document: Document, node: ast.expr | ast.stmt) -> str:
    start, end = span(document, node)
    return document.source[start:end]
