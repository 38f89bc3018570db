"""Which names of a program stand for Keras models, as far as its files show."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

from flatout.source.editing.dataflow import FUNCTIONS, arguments, called_name, names_in, within
from flatout.source.editing.project import Code, Project

_PACKAGES = ("tensorflow.", "keras.", "tf_keras.")
_MAKES = {"Sequential", "Model", "Functional", "load_model", "clone_model", "model_from_json"}
_DEEPEST = 6


class _Binding(NamedTuple):
    value: ast.expr | None
    """None for what is not followed."""
    path: str
    is_element: bool = False
    """Whether the name is one element of it, as that of a loop."""


class Models:
    """The models of one project. A name stands for one where everything that it is bound to is one."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def is_model(self, node: ast.expr, path: str, line: int) -> bool:
        """Whether an expression on this line gives a model: `actor`, `self.actor`, `self.actors[i]`."""
        return self._gives(node, path, line, 0)

    def _gives(self, node: ast.expr, path: str, line: int, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        if isinstance(node, ast.Call):
            return self._makes(node, path, depth)
        if isinstance(node, ast.IfExp):
            return self._gives(node.body, path, line, depth + 1) and self._gives(node.orelse, path, line, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._holds(node.value, path, line, depth + 1)
        if isinstance(node, (ast.Name, ast.Attribute)):
            bound = list(self._bound(node, path, line))
            return bool(bound) and all(
                one.value is not None
                and (self._holds if one.is_element else self._gives)(one.value, one.path, one.value.lineno, depth + 1)
                for one in bound
            )
        return False

    def _holds(self, node: ast.expr, path: str, line: int, depth: int) -> bool:
        """Whether an expression gives a list or a dictionary of models."""
        if depth > _DEEPEST:
            return False
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self._gives(item, path, line, depth + 1) for item in node.elts)
        if isinstance(node, ast.Dict):
            return bool(node.values) and all(self._gives(item, path, line, depth + 1) for item in node.values)
        if isinstance(node, ast.ListComp):
            return self._gives(node.elt, path, line, depth + 1)
        if isinstance(node, ast.DictComp):
            return self._gives(node.value, path, line, depth + 1)
        if isinstance(node, (ast.Name, ast.Attribute)):
            bound = list(self._bound(node, path, line))
            return bool(bound) and all(
                one.value is not None
                and not one.is_element
                and self._holds(one.value, one.path, one.value.lineno, depth + 1)
                for one in bound
            )
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "values":
            return self._holds(called.value, path, line, depth + 1)
        return False

    def _makes(self, call: ast.Call, path: str, depth: int) -> bool:
        """Whether a call makes a model, by Keras, by a class of the program, or by a function that returns one."""
        name, dotted = called_name(call.func), self.project.dotted(call.func, path)
        if dotted:
            last = dotted.rpartition(".")[2]
            return dotted.startswith(_PACKAGES) and (
                last in _MAKES or (".applications." in dotted and last[:1].isupper())
            )
        if name in self.project.bases:
            return any(base in ("Model", "Sequential") for base in self._above(name))
        functions = self.project.codes.get(name, ())
        return bool(functions) and all(self._returns(code, depth + 1) for code in functions)

    def _above(self, name: str) -> set[str]:
        """What a class inherits from that is no class of the program itself."""
        found, waiting = set[str](), [name]
        while waiting:
            for base in self.project.bases.get(waiting.pop(), ()):
                if base not in found:
                    found.add(base)
                    waiting.append(base)
        return {base for base in found if base not in self.project.bases}

    def _returns(self, code: Code, depth: int) -> bool:
        if isinstance(code.node, ast.Lambda):
            return self._gives(code.node.body, code.path, code.node.lineno, depth)
        returned = [node.value for node in within(code.node.body) if isinstance(node, ast.Return)]
        return bool(returned) and all(
            value is not None and self._gives(value, code.path, value.lineno, depth) for value in returned
        )

    def _bound(self, node: ast.Name | ast.Attribute, path: str, line: int) -> Iterator[_Binding]:
        """What a name is bound to. An attribute is that of any object."""
        if isinstance(node, ast.Attribute):
            yield from self._attributes.get(node.attr, ())
            return
        module = self.project.modules.get(path)
        codes = [code for code in self.project.all() if code.path == path and isinstance(code.node, FUNCTIONS)]
        around = [code for code in codes if code.node.lineno <= line <= (code.node.end_lineno or 0)]
        for code in sorted(around, key=lambda one: -one.node.lineno):
            own = [found for name, found in _assigned(code.node, path, ast.Name) if name == node.id]
            if node.id in arguments(code.node):
                own += self._given(code, node.id) or [_Binding(None, path)]
            if own:
                yield from own
                return
        yield from (found for name, found in _assigned(module, path, ast.Name) if name == node.id) if module else ()

    @functools.cached_property
    def _attributes(self) -> dict[str, list[_Binding]]:
        found: dict[str, list[_Binding]] = {}
        for path, module in self.project.modules.items():
            for name, binding in _assigned(module, path, ast.Attribute):
                found.setdefault(name, []).append(binding)
        return found

    def _given(self, code: Code, name: str) -> list[_Binding]:
        """What calls give a function of the program for one of its arguments."""
        names, called = arguments(code.node), code.holder if code.name == "__init__" else code.name
        found: list[_Binding] = []
        for path, module in self.project.modules.items():
            for node in ast.walk(module):
                if not isinstance(node, ast.Call) or called_name(node.func) != called:
                    continue
                bound = code.name == "__init__" or (isinstance(node.func, ast.Attribute) and bool(code.holder))
                given = dict(zip(names[bound:], node.args, strict=False))
                given.update({item.arg: item.value for item in node.keywords if item.arg})
                found.append(_Binding(given.get(name), path))
        return found


def _assigned(scope: ast.AST, path: str, kind: type[ast.expr]) -> Iterator[tuple[str, _Binding]]:
    """Names, or attributes, with what they are bound to. That something is None at first says nothing."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.comprehension)):
            if isinstance(node.target, kind):
                yield called_name(node.target), _Binding(node.iter, path, True)
            elif kind is ast.Name:
                yield from ((name, _Binding(None, path)) for name in names_in(node.target))
            continue
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            targets = [node.target]
        for target in targets:
            given = getattr(node, "value", None)
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, given)]
            if isinstance(target, ast.Tuple):
                parts: list[ast.expr | None] = [None] * len(target.elts)
                if isinstance(given, ast.Tuple) and len(given.elts) == len(target.elts):
                    parts = list(given.elts)
                pairs = list(zip(target.elts, parts, strict=True))
            for one, value in pairs:
                nothing = isinstance(value, ast.Constant) and value.value is None
                if isinstance(one, kind) and called_name(one) and not nothing:
                    yield called_name(one), _Binding(value, path)
