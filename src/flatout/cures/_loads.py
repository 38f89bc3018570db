"""What the source of a function reads: names with the attributes taken from them, per function, method or lambda."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from flatout.source import context, side_effects, users_code


class Load(NamedTuple):
    root: str
    attributes: tuple[str, ...]
    """`self.optimizer.rate` → ("self", ("optimizer", "rate"))"""
    line: int


class Source(NamedTuple):
    file: str
    loads: tuple[Load, ...]
    names: frozenset[str]
    """All attributes that are read, from whatever object."""
    against: str
    """Why it must not be traced, as `side_effects` says."""


def source_of(code: CodeType) -> Source | None:
    return _source(users_code.absolute(code.co_filename), code.co_firstlineno, code.co_name == "<lambda>")


@functools.lru_cache(maxsize=1024)
def _source(file: str, line: int, is_lambda: bool) -> Source | None:
    module = context.tree(file)
    if module is None:
        return None
    if is_lambda:
        found = [node for node in ast.walk(module) if isinstance(node, ast.Lambda) and node.lineno == line]
        body = [ast.copy_location(ast.Expr(node.body), node.body) for node in found]
        against = side_effects.reason_against_block(body, side_effects.imported(module)) if body else None
        nodes: list[ast.AST] = list(body)
    else:
        node = side_effects.definition_at(file, line)
        against = side_effects.reason_against(file, line)
        nodes = [node] if node is not None else []
    if not nodes:
        return None
    loads = tuple(load for node in nodes for load in _loads(node))
    return Source(file, loads, frozenset(_names(nodes, side_effects.imported(module))), against or "")


def _loads(function: ast.AST) -> Iterator[Load]:
    inner = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names = [node.attr]
            value: ast.expr = node.value
            while isinstance(value, ast.Attribute):
                inner.add(id(value))
                names.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name) and id(node) not in inner:
                inner.add(id(value))
                yield Load(value.id, tuple(reversed(names)), node.lineno)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            yield Load(node.id, (), node.lineno)


def _names(nodes: list[ast.AST], modules: dict[str, str]) -> Iterator[str]:
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if side_effects.root(node) not in modules:
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            yield from (arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant) and type(arg.value) is str)
