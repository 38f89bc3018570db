"""The classes of the objects that a program's attributes hold: `train` of `self.actor.train(…)` is that of `Actor`, and
of no other class with a method of this name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from flatout.source.editing.dataflow import FUNCTIONS, called_name


class Receivers:
    """An attribute is known by its name, whatever object it belongs to, where all that the files assign it are new
    objects: `self.actor = Actor(…)`."""

    def __init__(self, modules: Iterable[ast.Module]) -> None:
        self._made: dict[str, set[str]] = {}
        self._unknown: set[str] = set()
        self._any = False
        """Whether some attribute is set by a name that is computed."""
        for module in modules:
            self._read(module)

    def classes_of(self, called: ast.expr) -> set[str] | None:
        """What makes the object whose method this is, by name: `{"Actor"}` for `self.actor.train`; None where that is
        not known."""
        owner = called.value if isinstance(called, ast.Attribute) else None
        if not isinstance(owner, ast.Attribute) or self._any or owner.attr in self._unknown:
            return None
        return self._made.get(owner.attr)

    def _read(self, module: ast.Module) -> None:
        plain: set[int] = set()
        for node in ast.walk(module):
            for target, value in _assigned(node):
                if isinstance(target, ast.Attribute):
                    plain.add(id(target))
                    self._assigned(target.attr, value)
            if isinstance(node, ast.ClassDef):  # `actor = …` in its body is `self.actor` as well
                self._unknown |= {name for statement in node.body for name in _names_bound(statement)}
            elif isinstance(node, ast.Call) and called_name(node.func) in ("setattr", "__setattr__"):
                name = node.args[-2].value if len(node.args) > 1 and isinstance(node.args[-2], ast.Constant) else None
                self._unknown.add(str(name))
                self._any = self._any or name is None
        stored = (node for node in ast.walk(module) if isinstance(node, ast.Attribute))
        self._unknown |= {node.attr for node in stored if isinstance(node.ctx, ast.Store) and id(node) not in plain}

    def _assigned(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and value.value is None:
            return  # not yet
        made = called_name(value.func).lstrip("_") if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and made[:1].isupper():
            self._made.setdefault(name, set()).add(called_name(value.func))
        else:
            self._unknown.add(name)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values, where each has one of its own."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    for target in node.targets if isinstance(node, ast.Assign) else ():
        parts, values = getattr(target, "elts", None), getattr(getattr(node, "value", None), "elts", None)
        if parts is None:
            yield target, node.value  # type: ignore[attr-defined]
        elif values is not None and len(parts) == len(values):
            yield from zip(parts, values, strict=True)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, FUNCTIONS):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
