"""Python state that a trace would freeze, read from the source: what a function reads, and what changes it later.

A trace contains the Python values that it read. Where the program changes one of them between two calls (`model.beta =
epoch / 10` in the loop, a counter in a callback), the traced function goes on with the first value. Judged by name and
in doubt against tracing: what is assigned in a loop that calls the function, in functions that such a loop calls, in
callbacks, and between two calls.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from flatout.source import side_effects
from flatout.source.editing.dataflow import LOOPS, called_name
from flatout.source.editing.project import MAKERS, Code, Project
from flatout.source.editing.repeated_code import Part, Repeated

GROWS = frozenset(
    {
        *("append", "extend", "insert", "appendleft", "pop", "popleft", "popitem", "remove", "discard", "setdefault"),
        *("update", "clear", "sort", "reverse", "fill", "put", "resize", "add", "itemset", "__setitem__"),
    }
)
"""Methods that change a list, a dictionary, a set or an array in place."""
_OF_OPTIMIZER = {"learning_rate", "lr", "iterations"}
"""Attributes behind which Keras keeps a variable: a graph reads it anew."""
_LIBRARIES = ("tensorflow.", "keras.", "tf_keras.", "numpy.")
_NEEDS_TRAINABLE = {"trainable_variables", "trainable_weights"}


@dataclass(frozen=True)
class Access:
    """An attribute or a name, read or changed on a line."""

    name: str
    text: str
    """As it is written: `self.model.beta`."""
    path: str
    line: int
    is_name: bool = False
    of_class: str = ""
    """The class whose own method reads it from its object."""
    scope: ast.AST | None = None
    """Of a name: the function whose local it is; None for a global one."""


@dataclass(frozen=True)
class Frozen:
    """Something that a trace would freeze."""

    read: Access
    changed: Access

    @property
    def text(self) -> str:
        same = self.read.path == self.changed.path
        where = f"line {self.changed.line}" if same else f"{os.path.basename(self.changed.path)}:{self.changed.line}"
        return (
            f"`{self.read.text}` is read in the traced step (line {self.read.line} of "
            f"{os.path.basename(self.read.path)}) and changes ({where}: `{self.changed.text}`): a trace would freeze it"
        )


def frozen(
    project: Project,
    functions: Sequence[Code],
    calls: Iterable[str] = (),
    lines: Iterable[tuple[str, int]] = (),
    kept: bool = False,
) -> Frozen | None:
    """The first thing that would be frozen if these functions were traced.

    `calls`: further names by which the program runs them (`fit`); `lines`: where it was seen to do so; `kept`: a
    function that is made anew in a loop is made once from now on.
    """
    traced = project.reached(functions)
    read = [access for code in traced for access in reads(project, code)]
    by_name: dict[str, list[Access]] = {}
    for access in read:
        by_name.setdefault(access.name, []).append(access)
    repeated = Repeated(project, functions, frozenset(calls), frozenset(lines), kept)
    for part in repeated.parts():
        for change in changes(project, part):
            if change.name == "*":
                return Frozen(next((one for one in read if not one.is_name), change), change)
            for one in by_name.get(change.name, ()):
                if _same(project, one, change):
                    return Frozen(one, change)
    return None


def _same(project: Project, read: Access, change: Access) -> bool:
    """Whether both may mean the same thing."""
    if read.is_name != change.is_name:
        return False
    if read.is_name:
        return read.scope is change.scope and (read.path == change.path or read.scope is not None)
    first, second = (
        {one.of_class} if one.of_class else project.classes_of(one.text.rpartition(".")[0].rpartition(".")[2])
        for one in (read, change)
    )
    if first is None or second is None:
        return True
    return any(project.related(one, other) for one in first for other in second)


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def reads(project: Project, code: Code) -> Iterator[Access]:
    """What a function reads from outside: attributes of anything, globals, variables of functions around it."""
    parents = {id(node.func): node for node in _nodes(code) if isinstance(node, ast.Call)}
    for node in _nodes(code):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            called = parents.get(id(node))
            if project.dotted(node, code.path).startswith(_LIBRARIES) or (
                called and any(c.holder for c in project.meant(node, code))
            ):
                continue
            yield _attribute(node, code, node.attr)
            if node.attr in _NEEDS_TRAINABLE:
                yield _attribute(node, code, "trainable")
        elif isinstance(node, ast.Call) and called_name(node.func) == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                text = f"{ast.unparse(node.args[0])}.{name.value}"
                yield Access(name.value, text, code.path, node.lineno)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in code.local:
            yield Access(node.id, node.id, code.path, node.lineno, True, "", owner(project, code.around, node.id))


def _attribute(node: ast.Attribute, code: Code, name: str) -> Access:
    own = isinstance(node.value, ast.Name) and bool(code.this) and node.value.id == code.this
    text = f"{ast.unparse(node.value)}.{name}"[:80]
    return Access(name, text, code.path, node.lineno, of_class=code.holder if own else "")


def owner(project: Project, around: Sequence[ast.AST], name: str) -> ast.AST | None:
    """The function around whose local a name is; None for a global one."""
    for function in around:
        code = next((one for one in project.all() if one.node is function), None)
        if code is not None and name in code.local:
            return function
    return None


def _nodes(code: Code) -> Iterator[ast.AST]:
    return (node for part in code.body for node in ast.walk(part))


# ── changed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def changes(project: Project, part: Part) -> Iterator[Access]:
    """What some statements assign, fill or let grow."""
    once = {
        id(inner)
        for node in part.nodes()
        if isinstance(node, ast.If) and _asks_once(node.test)
        for inner in ast.walk(node)
    }
    for node in part.nodes():
        if id(node) in once:
            continue
        if isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield from _stored(project, part, node)
        elif isinstance(node, ast.Call):
            yield from _by_call(project, part, node)


def _stored(project: Project, part: Part, node: ast.expr) -> Iterator[Access]:
    inner = node
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    if isinstance(inner, ast.Attribute):
        if inner.attr in _OF_OPTIMIZER and "opt" in ast.unparse(inner.value).lower():
            return
        own = isinstance(inner.value, ast.Name) and part.code is not None and inner.value.id == part.code.this != ""
        of_class = part.code.holder if own and part.code is not None else ""
        yield Access(inner.attr, ast.unparse(inner)[:80], part.path, inner.lineno, of_class=of_class)
    elif isinstance(inner, ast.Name):
        code = part.code
        is_own = code is not None and inner.id in code.local
        scope = code.node if is_own and code is not None else owner(project, code.around if code else (), inner.id)
        yield Access(inner.id, inner.id, part.path, inner.lineno, True, "", scope)


def _by_call(project: Project, part: Part, node: ast.Call) -> Iterator[Access]:
    name = called_name(node.func)
    if name == "setattr" and isinstance(node.func, ast.Name) and len(node.args) == 3:
        target = node.args[1]
        if isinstance(target, ast.Constant) and isinstance(target.value, str):
            text = f"{ast.unparse(node.args[0])}.{target.value}"
            yield Access(target.value, text, part.path, node.lineno)
        else:
            yield Access("*", ast.unparse(node)[:80], part.path, node.lineno)
    elif name in GROWS and isinstance(node.func, ast.Attribute):
        if not project.dotted(node.func, part.path):
            yield from _stored(project, part, node.func.value)
    elif name in ("shuffle", "copyto", "put", "place", "putmask") and node.args:
        library = project.dotted(node.func, part.path)
        if library.startswith(("numpy", "random")):
            yield from _stored(project, part, node.args[0])


def _asks_once(test: ast.expr) -> bool:
    """`if self.optimizer is None:`, `if not hasattr(self, "x"):`, `if not self.built:`: done once."""
    if isinstance(test, ast.Compare):
        return any(isinstance(op, ast.Is) for op in test.ops) and "None" in ast.unparse(test)
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and ("hasattr" in (t := ast.unparse(test)) or t.endswith("built"))
    )


# ── side effects ─────────────────────────────────────────────────────────────────────────────────────────────────────


def effect(project: Project, functions: Sequence[Code], *, kept: bool = False) -> str | None:
    """What these functions, or those that they call, do besides computing, as a sentence with its line. `kept`: their
    results are kept, rather than their operations traced."""
    for code in project.reached(functions):
        if code.name in MAKERS:
            continue
        found = side_effects.reason_against_block(code.body, project.imported[code.path], kept=kept)
        if found:
            once = "it would happen once" if kept else "a trace would do it once"
            return f"in {code.name} ({os.path.basename(code.path)}), {found}: {once}"
    return None


def given_to_compile(project: Project) -> list[Code]:
    """Functions of the program that are losses or metrics of a Keras model."""
    found: dict[Code, None] = {}
    for path, module in project.modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and called_name(node.func) == "compile":
                given = (inner for part in (*node.args, *node.keywords) for inner in ast.walk(part))
                for inner in given:
                    if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Load):
                        found.update(dict.fromkeys(project.meant(inner, None, path)))
    return list(found)


def wrapped(project: Project) -> Iterator[str]:
    """The names of what is given to `tf.function`, where the result is kept: one that is made in a loop, or called at
    once, reads everything anew."""
    for path, module in project.modules.items():
        anew = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
        anew |= {id(node) for loop in ast.walk(module) if isinstance(loop, LOOPS) for node in ast.walk(loop)}
        for node in ast.walk(module):
            if not isinstance(node, ast.Call) or not node.args or id(node) in anew:
                continue
            if project.dotted(node.func, path) == "tensorflow.function":
                yield called_name(node.args[0])
