"""The code that runs between two calls of a function: loops that call it, what they call, callbacks."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatout.source.editing.dataflow import LOOPS, SCOPES, called_name
from flatout.source.editing.project import MAKERS, Code, Project

_CALLBACK = re.compile(r"on_(epoch|train|test|predict|batch|step|iteration)\w*$")
_MAKES_GRAPH = ("function", "partial", "jit", "wraps", "staticmethod", "classmethod")
_NEW_GRAPH = "compile"
"""A Keras model that is compiled again is traced again."""


@dataclass(frozen=True, eq=False)
class Part:
    """Statements of one function, or of a file."""

    path: str
    body: Sequence[ast.AST]
    code: Code | None
    """The function that they are in; None at the top of the file."""

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes in the same scope; comprehensions and lambdas change nothing around them."""
        waiting = list(reversed(self.body))
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, (*SCOPES, ast.comprehension)):
                waiting.extend(reversed(list(ast.iter_child_nodes(node))))


class Repeated:
    """Finds it for some functions that are to be traced."""

    def __init__(
        self,
        project: Project,
        functions: Sequence[Code],
        calls: frozenset[str],
        lines: frozenset[tuple[str, int]],
        kept: bool = False,
    ) -> None:
        """`kept`: a function that is defined again and again is defined once from now on."""
        self.project = project
        self.start = set(functions)
        self.made_anew = set() if kept else {node for code in functions for node in code.around}
        """Functions around them: each call of one makes a new function to trace."""
        self.by_fit = "fit" in calls
        self.lines, self.kept = lines, kept
        self.names = self._callers({code.name for code in functions if code.name not in ("call", "__call__")} | calls)
        """The functions themselves, and those that call them, directly or not."""

    def _callers(self, names: set[str]) -> set[str]:
        known = {code: _all_named(self.project, Part(code.path, code.body, code)) for code in self.project.all()}
        while True:
            more = {code.name for code, called in known.items() if called & names and code.name not in names}
            more -= MAKERS | {"call", "__call__"}
            if not more:
                return names
            names = names | more

    def parts(self) -> Iterator[Part]:
        found: list[Part] = []
        for path, module in self.project.modules.items():
            found += self._of_scope(Part(path, module.body, None))
            found += self._given_callbacks(path, module)
        for code in self.project.all():
            found += self._of_scope(Part(code.path, code.body, code))
            if _CALLBACK.match(code.name):
                found.append(Part(code.path, code.body, code))
        seen: set[Code] = {part.code for part in found if part.code is not None and part.body is part.code.body}
        for part in found:  # grows
            yield part
            for code in self._called(part):
                if code not in seen and code not in self.start and self._may_change(code):
                    seen.add(code)
                    found.append(Part(code.path, code.body, code))

    def _may_change(self, code: Code) -> bool:
        return code.name not in MAKERS and code.node not in self.made_anew

    def _given_callbacks(self, path: str, module: ast.Module) -> Iterator[Part]:
        """`LambdaCallback(on_epoch_end=change)`"""
        for value in _callbacks(self.project, module):
            if isinstance(value, ast.Lambda):
                yield Part(path, [ast.copy_location(ast.Expr(value.body), value.body)], None)
            elif isinstance(value, (ast.Name, ast.Attribute)):
                codes = self.project.meant(value, None, path)
                yield from (Part(code.path, code.body, code) for code in codes)

    def _of_scope(self, scope: Part) -> Iterator[Part]:
        """The loops of one scope that make the calls, and what stands between two calls."""
        if not self.lines and self.names.isdisjoint(_all_named(self.project, scope)):
            return
        loops, blocks = _loops_and_blocks(self.project, scope)
        for node in loops:
            if self._calls(node, scope.path) and not self._makes(node):
                yield Part(scope.path, [node], scope.code)
        for block in blocks:
            at = [index for index, statement in enumerate(block) if self._calls(statement, scope.path, plainly=True)]
            for first, last in itertools.pairwise(at):
                between = block[first + 1 : last]
                if self.by_fit:
                    compiled = [i for i, item in enumerate(between) if _mentions(item, _NEW_GRAPH)]
                    between = between[compiled[-1] + 1 :] if compiled else between
                if between:
                    yield Part(scope.path, between, scope.code)

    def _makes(self, loop: ast.AST) -> bool:
        """Whether a loop defines one of the functions anew in each iteration."""
        if self.kept:
            return False
        inside = set(ast.walk(loop))
        return any(code.node in inside for code in self.start)

    def _calls(self, statement: ast.AST, path: str, plainly: bool = False) -> bool:
        """Whether a statement runs one of the functions."""
        if isinstance(statement, SCOPES):
            return False
        first, last = getattr(statement, "lineno", 0), getattr(statement, "end_lineno", 0) or 0
        if any(file == path and first <= line <= last for file, line in self.lines):
            return True
        return not self.names.isdisjoint(_named_in(self.project, statement, plainly))

    def _called(self, part: Part) -> Iterator[Code]:
        """What some statements call or pass on, functions that were given to a callback among it."""
        for node in part.nodes():
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                yield from self.project.meant(node, part.code, part.path)


# What each function to be traced asks of every other one is kept with the project: files may have hundreds of both.


def _all_named(project: Project, part: Part) -> frozenset[str]:
    """What a whole function or file runs."""
    key = (_all_named, part.code or part.path)
    if key not in project.known:
        calls = (node for node in part.nodes() if isinstance(node, ast.Call))
        project.known[key] = frozenset(name for node in calls for name in _named_by(node))
    found: frozenset[str] = project.known[key]
    return found


def _named_in(project: Project, statement: ast.AST, plainly: bool) -> frozenset[str]:
    """What a statement runs."""
    key = (_named_in, statement, plainly)
    if key not in project.known:
        calls = (node for node in Part("", [statement], None).nodes() if isinstance(node, ast.Call))
        project.known[key] = frozenset(name for node in calls for name in _named_by(node, plainly))
    found: frozenset[str] = project.known[key]
    return found


def _loops_and_blocks(project: Project, scope: Part) -> tuple[list[ast.AST], list[list[ast.AST]]]:
    """Of a whole function or file."""
    key = (_loops_and_blocks, scope.code or scope.path)
    if key not in project.known:
        nodes = list(scope.nodes())
        blocks: list[list[ast.AST]] = [list(scope.body), *(block for node in nodes for block in _blocks(node))]
        project.known[key] = ([node for node in nodes if isinstance(node, LOOPS)], blocks)
    found: tuple[list[ast.AST], list[list[ast.AST]]] = project.known[key]
    return found


def _named_by(call: ast.Call, plainly: bool = False) -> Iterator[str]:
    """What a call runs: the function itself and, unless `plainly`, what it passes on: `strategy.run(step, …)`."""
    if called_name(call.func) in _MAKES_GRAPH:
        return
    yield called_name(call.func)
    for value in () if plainly else (*call.args, *(item.value for item in call.keywords)):
        if isinstance(value, (ast.Name, ast.Attribute)):
            yield called_name(value)


def _callbacks(project: Project, module: ast.Module) -> list[ast.expr]:
    """What calls are given as callbacks by their names."""
    key = (_callbacks, module)
    if key not in project.known:
        calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
        given = (item for call in calls for item in call.keywords)
        project.known[key] = [item.value for item in given if _CALLBACK.match(item.arg or "")]
    found: list[ast.expr] = project.known[key]
    return found


def _mentions(statement: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node.func) == name for node in ast.walk(statement))


def _blocks(node: ast.AST) -> Iterator[list[ast.AST]]:
    if isinstance(node, SCOPES):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
