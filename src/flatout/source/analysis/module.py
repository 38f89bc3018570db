"""One source file: its text, names and scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from flatout.source.analysis.imports import Names
from flatout.source.analysis.scopes import FUNCTIONS, Scope, Site

DEEPEST = 250
"""Levels of nested statements; real code has fewer than twenty."""


def parses(text: str) -> None:
    """Raises what `ast.parse` would raise, in two thirds of its time, as no nodes are made.

    Python rejects an unknown feature right after parsing the whole text, before it does anything else.
    """
    try:
        compile("from __future__ import nothing\n" + text, "<unknown>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.lineno == 1:
            return
        error.lineno = error.lineno and error.lineno - 1
        raise


class Module:
    def __init__(self, text: str, path: str = "", version: tuple[int, int] = (2, 16)) -> None:
        self.text, self.path, self.version = text, path, version
        self.tree = ast.parse(text)
        self.names = Names()
        self.top = Scope(self, self.tree, None)
        self.scopes: list[Scope] = [self.top]
        self._lambdas: dict[ast.AST, Scope] = {}
        self._statements(self.tree.body, self.top, 0)

    def _statements(self, body: list[ast.stmt], scope: Scope, depth: int) -> None:
        if depth > DEEPEST:
            raise RecursionError
        for node in body:
            kind = type(node)
            if kind is ast.Expr or kind is ast.Return or kind is ast.AugAssign:
                continue
            if kind is ast.Assign:
                if scope is self.top and len(node.targets) == 1:  # type: ignore[attr-defined]
                    target, value = node.targets[0], node.value  # type: ignore[attr-defined]
                    if type(target) is ast.Name and type(value) is ast.Attribute:
                        self.names.add_alias(target.id, value)
            elif kind is ast.Import or kind is ast.ImportFrom:
                self.names.add_import(node)  # type: ignore[arg-type]
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                inner = Scope(self, node, scope)
                self.scopes.append(inner)
                self._statements(node.body, inner, depth + 1)
            else:
                # A chain of `elif` nests in the tree: follow it without recursion.
                while type(node) is ast.If and len(node.orelse) == 1 and type(node.orelse[0]) is ast.If:
                    self._statements(node.body, scope, depth + 1)
                    node = node.orelse[0]
                for name in ("body", "orelse", "finalbody"):
                    inner_body = getattr(node, name, None)
                    if inner_body:
                        self._statements(inner_body, scope, depth + 1)
                for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                    self._statements(handler.body, scope, depth + 1)

    def release(self) -> None:
        """Break the reference cycles between scopes and modules, so that the memory is freed without a collection."""
        for scope in (*self.scopes, *self._lambdas.values()):
            scope.__dict__.clear()
        self.__dict__.clear()

    def add_lambda(self, node: ast.Lambda, parent: Scope) -> Scope:
        if node not in self._lambdas:
            self._lambdas[node] = Scope(self, node, parent)
        return self._lambdas[node]

    @cached_property
    def lines(self) -> list[str]:
        """As Python counts them: form feeds and Unicode separators do not end a line."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def source_line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def functions(self) -> dict[str, list[Scope]]:
        """Functions and methods by name."""
        found: dict[str, list[Scope]] = {}
        for scope in self.scopes:
            if scope.is_function:
                found.setdefault(scope.name, []).append(scope)
        return found

    @cached_property
    def classes(self) -> dict[str, Scope]:
        return {scope.name: scope for scope in self.scopes if scope.is_class}

    def everything(self) -> Iterator[Scope]:
        """All scopes including lambdas. Their facts are read on the way."""
        seen: set[int] = set()
        waiting = [self.top]
        while waiting:
            scope = waiting.pop()
            if id(scope) in seen:
                continue
            seen.add(id(scope))
            yield scope
            _ = scope.facts
            waiting.extend(scope.children)

    @cached_property
    def calls_by_name(self) -> dict[str, list[tuple[ast.Call, Site]]]:
        """Every call of the file by the last part of the name it calls."""
        from flatout.source.analysis.syntax import last_name

        found: dict[str, list[tuple[ast.Call, Site]]] = {}
        for scope in self.everything():
            for call, site in scope.facts.calls:
                name = last_name(call.func)
                if name:
                    found.setdefault(name, []).append((call, site))
        return found

    def function_of(self, node: ast.AST, site: Site) -> Scope | None:
        """The function of this file that an expression refers to: a name, `self.method`, a lambda, a partial."""
        if isinstance(node, ast.Lambda):
            return self.add_lambda(node, site.scope)
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "partial" and node.args:
                return self.function_of(node.args[0], site)
            return None
        if isinstance(node, ast.Name):
            return self._visible(node.id, site)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("self", "cls"):
                return self._method(node.attr, site.scope)
            owner = self.classes.get(node.value.id)
            return owner.method(node.attr) if owner is not None else None
        return None

    def _visible(self, name: str, site: Site) -> Scope | None:
        for scope in site.scope.around():
            if scope.is_class and scope is not site.scope:
                continue
            for child in reversed(scope.children):
                if child.name == name and isinstance(child.node, FUNCTIONS):
                    return child
        return None

    def _method(self, name: str, scope: Scope) -> Scope | None:
        owner = next((around for around in scope.around() if around.is_class), None)
        seen = 0
        while owner is not None and seen < 8:
            found = owner.method(name)
            if found is not None:
                return found
            seen += 1
            bases = [base.id for base in getattr(owner.node, "bases", ()) if isinstance(base, ast.Name)]
            owner = next((self.classes[base] for base in bases if base in self.classes), None)
        return None
