"""Whether a function of a program is given another model or optimizer in another call.

A graph makes variables in its first call only: the second model's, or its optimizer's, it would not make.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, arguments, bindings, bound_in, called_name
from flatout.source.side_effects import Definition

_MAKES = re.compile(r"_*([A-Z]|(build|make|create|clone)(_|$))")
"""Names of what gives a new object each time: classes, and functions that say so."""
_DEEP = 3


@dataclass(frozen=True)
class Other:
    """An argument that is another object in another call."""

    name: str
    path: str
    line: int


@dataclass(frozen=True)
class _Call:
    node: ast.Call
    path: str
    loops: tuple[ast.AST, ...]
    """Around it, in its own scope or further out."""
    functions: tuple[Definition, ...]
    """Around it, outermost first."""

    def given(self, function: Definition) -> Iterator[tuple[str, ast.expr]]:
        taken = arguments(function)
        bound = isinstance(self.node.func, ast.Attribute) and taken[:1] in (["self"], ["cls"])
        yield from zip(taken[1:] if bound else taken, self.node.args, strict=False)
        yield from ((item.arg or "", item.value) for item in self.node.keywords)


def others(
    modules: Mapping[str, ast.Module],
    function: Definition,
    names: Collection[str],
    called: str = "",
    deep: int = _DEEP,
) -> Iterator[Other]:
    """Those of a function's arguments `names` that are another object in another call. `called`: the name by which it
    is called, where that is not its own."""
    given: dict[str, set[str]] = {}
    calls = list(_calls(modules, called or function.name)) if names else []
    for call in calls:
        for name, value in call.given(function):
            if name not in names:
                continue
            texts = given.setdefault(name, set())
            texts.add(ast.unparse(value))
            if len(texts) > 1 or _is_new(modules, call, value, deep):
                yield Other(name, call.path, call.node.lineno)


def _is_new(modules: Mapping[str, ast.Module], call: _Call, value: ast.expr, deep: int) -> bool:
    """Whether one call, which runs several times, passes another object each time."""
    if isinstance(value, ast.Call):
        return bool(call.loops) and bool(_MAKES.match(called_name(value)))
    if not isinstance(value, ast.Name):
        return False
    if any(value.id in bound_in([loop]) for loop in call.loops):
        return True
    around = call.functions[-1] if call.functions else None
    if around is None or not deep:
        return False
    if value.id in bindings(around.body):
        return _makes(around, value.id) and _runs_again(modules, around.name)
    return value.id in arguments(around) and any(others(modules, around, {value.id}, deep=deep - 1))


def _makes(function: Definition, name: str) -> bool:
    """Whether a function makes the object that it binds a name to."""
    pairs = (
        pair
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        for pair in _pairs(target, node.value)
    )
    made = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
    return any(isinstance(value, ast.Call) and _MAKES.match(called_name(value)) for value in made)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    elif isinstance(target, ast.Tuple):
        yield from ((part, value) for part in target.elts)
    else:
        yield target, value


def _runs_again(modules: Mapping[str, ast.Module], name: str) -> bool:
    calls = list(_calls(modules, name))
    return len(calls) > 1 or any(call.loops for call in calls)


def _calls(modules: Mapping[str, ast.Module], name: str) -> Iterator[_Call]:
    for path, module in modules.items():
        waiting: list[tuple[ast.AST, tuple[ast.AST, ...], tuple[Definition, ...]]] = [(module, (), ())]
        while waiting:
            node, loops, functions = waiting.pop()
            if isinstance(node, ast.Call) and called_name(node.func) == name:
                yield _Call(node, path, loops, functions)
            inner = (*loops, node) if isinstance(node, LOOPS) else loops
            around = (*functions, node) if isinstance(node, FUNCTIONS) else functions
            waiting.extend((child, inner, around) for child in ast.iter_child_nodes(node))
