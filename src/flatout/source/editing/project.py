"""The functions and classes of a program's own files, and which of them a piece of code may call, by name."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flatout.source import side_effects
from flatout.source.editing.dataflow import FUNCTIONS, bound_in, called_name
from flatout.source.editing.dataflow import arguments as arguments_of
from flatout.source.editing.receivers import Receivers

MAKERS = frozenset({"__init__", "__new__", "__post_init__", "build", "__setstate__", "from_config"})
"""Methods that fill a new object."""
CALLED = ("call", "__call__")
"""What runs when an object is called."""


@dataclass(frozen=True, eq=False)
class Code:
    """A function, a method, or a lambda that has a name."""

    path: str
    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    holder: str
    """The class that it is a method of; empty for any other function."""
    around: tuple[ast.AST, ...]
    """The functions around it, innermost first."""

    @property
    def body(self) -> list[ast.stmt]:
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Expr(self.node.body), self.node.body)]
        return self.node.body

    @functools.cached_property
    def local(self) -> set[str]:
        """Names that are its own: arguments, and what it binds without declaring it as global or nonlocal."""
        own = set(arguments_of(self.node)) | bound_in(self.body)
        declared = (
            node for part in self.body for node in ast.walk(part) if isinstance(node, (ast.Global, ast.Nonlocal))
        )
        return own - {name for node in declared for name in node.names}

    @property
    def this(self) -> str:
        """How a method calls its object."""
        return (arguments_of(self.node)[:1] or [""])[0] if self.holder else ""

    @property
    def is_traced(self) -> bool:
        """Whether the program itself traces it: what it reads is frozen already."""
        decorators = getattr(self.node, "decorator_list", ())
        return any("function" in ast.unparse(item).rpartition(".")[2].split("(")[0] for item in decorators)


class Project:
    """Some files, read once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.modules: dict[str, ast.Module] = {}
        self.codes: dict[str, list[Code]] = {}
        self.bases: dict[str, set[str]] = {}
        """The classes, and the names of what they inherit from."""
        self.made_by: dict[str, set[str]] = {}
        """What a name or an attribute is assigned: the names that are called for it, "" for anything else."""
        self.known: dict[Hashable, Any] = {}
        """What was found out about parts of these files, by the question."""
        for path, text in texts.items():
            try:
                self.modules[path] = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError):
                continue
            self._read(path, self.modules[path], "", ())
        self.imported = {path: side_effects.imported(module) for path, module in self.modules.items()}
        self.own_modules = {os.path.splitext(os.path.basename(path))[0] for path in self.modules}

    def _read(self, path: str, node: ast.AST, holder: str, around: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                self._add(Code(path, child.name, child, holder, around))
                self._read(path, child, "", (child, *around))
            elif isinstance(child, ast.ClassDef):
                self.bases.setdefault(child.name, set()).update(map(called_name, child.bases))
                self._read(path, child, child.name, around)
            else:
                if isinstance(child, ast.Assign):
                    self._assigned(path, child, holder, around)
                self._read(path, child, holder, around)

    def _assigned(self, path: str, node: ast.Assign, holder: str, around: tuple[ast.AST, ...]) -> None:
        for target in node.targets:
            name = called_name(target)
            if not name:
                continue
            made = called_name(node.value.func) if isinstance(node.value, ast.Call) else ""
            self.made_by.setdefault(name, set()).add(made)
            if isinstance(node.value, ast.Lambda):
                self._add(Code(path, name, node.value, "", around))

    def _add(self, code: Code) -> None:
        self.codes.setdefault(code.name, []).append(code)

    def at(self, path: str, line: int) -> Code | None:
        """The function whose `def` or first decorator is on this line."""
        for code in self.all():
            if code.path != path or isinstance(code.node, ast.Lambda):
                continue
            if line in (code.node.lineno, side_effects.first_line(code.node)):
                return code
        return None

    def all(self) -> Iterator[Code]:
        return (code for codes in self.codes.values() for code in codes)

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────

    def reached(self, start: Iterable[Code]) -> list[Code]:
        """These, and the functions that they may call, except those that the program traces by itself."""
        found = list(dict.fromkeys(start))
        for code in found:  # grows
            found += [other for other in dict.fromkeys(self._mentioned(code)) if other not in found]
        return found

    def _mentioned(self, code: Code) -> Iterator[Code]:
        for node in (inner for part in code.body for inner in ast.walk(part)):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                yield from (other for other in self.meant(node, code) if not other.is_traced)
            if isinstance(node, ast.Call) and not self.dotted(node.func, code.path):
                yield from self._objects(node, code)

    def meant(self, node: ast.Name | ast.Attribute, code: Code | None, path: str = "") -> list[Code]:
        """The functions that a name or an attribute may stand for."""
        if self.dotted(node, code.path if code else path):
            return []
        if isinstance(node, ast.Name):
            if (
                code is not None
                and node.id in code.local
                and not any(self._inside(c, code) for c in self.codes.get(node.id, ()))
            ):
                return []
            return [found for found in self.codes.get(node.id, ()) if not found.holder]
        found = [item for item in self.codes.get(node.attr, ()) if item.holder or isinstance(item.node, ast.Lambda)]
        if code is not None and code.this and isinstance(node.value, ast.Name) and node.value.id == code.this:
            return [item for item in found if not item.holder or self.related(item.holder, code.holder)]
        classes = self._receivers.classes_of(node)
        if classes is not None and classes <= set(self.bases):
            return [item for item in found if not item.holder or any(self.related(item.holder, c) for c in classes)]
        return [*found, *(item for item in self.codes.get(node.attr, ()) if item not in found and not item.holder)]

    @functools.cached_property
    def _receivers(self) -> Receivers:
        return Receivers(self.modules.values())

    @staticmethod
    def _inside(inner: Code, outer: Code) -> bool:
        return outer.node in inner.around

    def _objects(self, call: ast.Call, code: Code) -> Iterator[Code]:
        """Methods that run when the object of a name is called."""
        name = called_name(call.func)
        if not name or any(True for _ in self.codes.get(name, ())):
            return
        makers = self.made_by.get(name, set())
        for found in (code for method in CALLED for code in self.codes.get(method, ())):
            # A model may hold any layer, under any name. An object of a class that inherits from nothing is known by
            # the name that it is given.
            if self.bases.get(found.holder, set()) - {"object", ""} or any(
                self.related(m, found.holder) for m in makers
            ):
                yield found

    # ── classes ──────────────────────────────────────────────────────────────────────────────────────────────

    def related(self, one: str, other: str) -> bool:
        return one == other or one in self._above(other) or other in self._above(one)

    def _above(self, name: str) -> set[str]:
        found, waiting = set[str](), [name]
        while waiting:
            for base in self.bases.get(waiting.pop(), ()):
                if base and base not in found:
                    found.add(base)
                    waiting.append(base)
        return found

    def classes_of(self, name: str) -> set[str] | None:
        """The classes of what a name is bound to; None where that is not known."""
        makers = self.made_by.get(name)
        if not makers or "" in makers:
            return None
        return makers if all(made in self.bases or made[:1].isupper() for made in makers) else None

    def dotted(self, node: ast.expr, path: str) -> str:
        """`tf.nn.relu` → `tensorflow.nn.relu`; empty if the name is no import, or one of a file of the program."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        known = self.imported.get(path, {})
        if not isinstance(node, ast.Name) or node.id not in known:
            return ""
        full = known[node.id]
        return "" if set(full.split(".")) & self.own_modules else ".".join([full, *reversed(parts)])
