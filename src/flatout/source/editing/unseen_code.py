"""Whether a step calls what a package made whose source is not seen here: a layer of another library, say.

A program that only logs with a package, or plays a game of it, keeps nothing of it in its step. Names are followed
without their places: one that any file binds to such a thing counts everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from flatout.source.editing.dataflow import FUNCTIONS, arguments, called_name

MOST_ROUNDS = 20


def called(nodes: Iterable[ast.AST], modules: Sequence[ast.Module], packages: set[str]) -> bool:
    """Whether one of these nodes calls such a thing. `packages`: those that are not seen."""
    unseen = _Unseen(modules, packages)
    if "*" in unseen.imported:
        return True
    return any(unseen.holds_name(node.func) for node in nodes if isinstance(node, ast.Call))


class _Unseen:
    def __init__(self, modules: Sequence[ast.Module], packages: set[str]) -> None:
        self.imported = {name for module in modules for name in _bound(module, packages)}
        self.made: set[str] = set()
        """Variables, attributes, functions and classes."""
        nodes = [node for module in modules for node in ast.walk(module)]
        functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for node in nodes:
            if isinstance(node, FUNCTIONS):
                functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                made = (item for item in node.body if isinstance(item, FUNCTIONS) and item.name == "__init__")
                functions.setdefault(node.name, []).extend(made)
        for _ in range(MOST_ROUNDS):
            before = len(self.made)
            for node in nodes:
                self._follow(node, functions)
            if len(self.made) == before:
                return

    def _follow(self, node: ast.AST, functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]) -> None:
        if isinstance(node, ast.Assign) and self._makes(node.value):
            self.made |= {name for target in node.targets for name in _names(target)}
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None and self._makes(node.value):
            self.made |= set(_names(node.target))
        elif isinstance(node, FUNCTIONS):
            given = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value)
            if any(map(self._makes, given)):
                self.made.add(node.name)
        elif isinstance(node, ast.ClassDef) and any(map(self.holds_name, node.bases)):
            self.made.add(node.name)
        elif isinstance(node, ast.Call):
            if called_name(node) in ("add", "append") and any(map(self._makes, node.args)):
                self.made |= set(_names(getattr(node.func, "value", node.func)))
            for function in functions.get(called_name(node), ()):
                names = [name for name in arguments(function) if name not in ("self", "cls")]
                pairs = [*zip(names, node.args, strict=False), *((item.arg, item.value) for item in node.keywords)]
                self.made |= {name for name, value in pairs if name in names and self._makes(value)}

    def _makes(self, value: ast.expr) -> bool:
        """Whether what an expression makes may hold such a thing: what is read of one (`env.action_space.n`) does not,
        unless it is the whole of it."""
        if self.holds_name(value.func if isinstance(value, ast.Call) else value):
            return True
        read = {id(node.value) for node in ast.walk(value) if isinstance(node, (ast.Attribute, ast.Subscript))}
        return any(
            isinstance(node, ast.Name) and (node.id in self.imported or (node.id in self.made and id(node) not in read))
            for node in ast.walk(value)
        )

    def holds_name(self, node: ast.expr) -> bool:
        """Whether a chain of names, `self.model.layers`, has one of these."""
        return not {*_names(node)}.isdisjoint(self.imported | self.made)


def _names(node: ast.AST) -> Iterator[str]:
    """Of a chain: `self.model` is known as `model`."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _names(item)
        return
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name) and node.id != "self":
        yield node.id


def _bound(module: ast.Module, packages: set[str]) -> Iterator[str]:
    """The names by which a file knows these packages, and what it takes from them."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in packages:
                    yield alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module.split(".")[0] if node.module else alias.name) in packages:
                    yield alias.asname or alias.name
