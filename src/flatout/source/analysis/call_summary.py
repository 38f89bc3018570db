"""What a function of a file calls, directly and through other functions of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from flatout.source.analysis.scopes import Scope, Site
from flatout.source.analysis.syntax import last_name

DEPTH = 5


@dataclass
class CallSummary:
    calls: list[tuple[str, ast.Call, Site]] = field(default_factory=list)
    """(dotted name or empty, call, its site)"""
    methods: set[str] = field(default_factory=set)
    known: bool = False
    """Whether the source of the function was found."""

    def names(self) -> set[str]:
        return {name for name, _, _ in self.calls if name}

    def first(self, *prefixes: str) -> tuple[str, ast.Call, Site] | None:
        return next((item for item in self.calls if item[0].startswith(prefixes)), None)


def summarize(node: ast.AST | None, site: Site) -> CallSummary:
    """For the function that an expression refers to. An imported function counts as a call of it."""
    result = CallSummary()
    if node is None:
        return result
    found = site.module.function_of(node, site)
    if found is not None:
        result.known = True
        _collect(found, result, set(), 0)
    else:
        inner = node.args[0] if isinstance(node, ast.Call) and last_name(node.func) == "partial" and node.args else node
        dotted = site.dotted(inner)
        if dotted.startswith(("tensorflow.", "keras.")):
            result.known = True
            result.calls.append((dotted, ast.Call(func=inner, args=[], keywords=[]), site))  # type: ignore[arg-type]
    return result


def summarize_scope(scope: Scope) -> CallSummary:
    result = CallSummary(known=True)
    _collect(scope, result, set(), 0)
    return result


def _collect(scope: Scope, into: CallSummary, seen: set[Scope], depth: int) -> None:
    if scope in seen or depth > DEPTH:
        return
    seen.add(scope)
    for call, site in sorted(scope.facts.calls, key=lambda item: (item[0].lineno, item[0].col_offset)):
        into.calls.append((site.dotted(call.func), call, site))
        if isinstance(call.func, ast.Attribute):
            into.methods.add(call.func.attr)
        for inner in _reached(call, site):
            _collect(inner, into, seen, depth + 1)


def _reached(call: ast.Call, site: Site) -> Iterator[Scope]:
    for item in (call.func, *call.args):
        found = site.module.function_of(item, site)
        if found is not None:
            yield found
