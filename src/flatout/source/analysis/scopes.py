"""One source file: its text, its names and its tree of scopes, and what each contains: calls, bindings, loops, returns.

The tree is made from the statements alone, which is fast. The expressions of a scope are read when its facts are first
used: by a detector whose words occur in it, or from another scope.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from flatout.source.analysis.imports import Names
from flatout.source.analysis.syntax import last_name

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Arm = tuple[ast.AST, int]
"""A statement with arms (`if`, `try`), and the number of the arm."""


_new_site = object.__new__
_Answer = TypeVar("_Answer")


class Site:
    """The position of a node: its statement, and the loops, arms and `with` blocks around it in its scope."""

    __slots__ = ("arms", "loops", "module", "scope", "statement", "withs")

    def __init__(
        self,
        module: Module,
        scope: Scope,
        loops: tuple[Loop, ...] = (),
        arms: tuple[Arm, ...] = (),
        withs: tuple[ast.With, ...] = (),
        statement: ast.stmt | None = None,
    ) -> None:
        self.module, self.scope, self.loops, self.arms, self.withs = module, scope, loops, arms, withs
        self.statement = statement

    def at(self, statement: ast.stmt) -> Site:
        made = _new_site(Site)
        made.module, made.scope, made.loops = self.module, self.scope, self.loops
        made.arms, made.withs, made.statement = self.arms, self.withs, statement
        return made

    def inside(self, **changed: object) -> Site:
        made = Site(self.module, self.scope, self.loops, self.arms, self.withs, self.statement)
        for name, value in changed.items():
            setattr(made, name, value)
        return made

    @property
    def line(self) -> int:
        return self.statement.lineno if self.statement is not None else 0

    def dotted(self, node: ast.AST) -> str:
        return self.module.names.dotted(node)

    def raw(self, node: ast.AST) -> str:
        return self.module.names.raw(node)

    def unsure_of(self, other: Site) -> bool:
        """Whether both are under different conditions, which may never hold at the same time."""
        mine, others = set(self.arms), set(other.arms)
        return self.scope is other.scope and bool(mine - others) and bool(others - mine)

    def excludes(self, other: Site) -> bool:
        """Whether both are in different arms of one statement, so that only one of them runs."""
        mine = dict(self.arms)
        return any(mine.get(statement, arm) != arm for statement, arm in other.arms)


@dataclass(frozen=True)
class Bind:
    """A name gets a value. `part` is the index in an unpacked tuple; `how` is assign, augment, for or with."""

    value: ast.expr | None
    site: Site
    how: str = "assign"
    part: int | None = None


@dataclass
class Facts:
    calls: list[tuple[ast.Call, Site]] = field(default_factory=list)
    others: list[tuple[ast.AST, Site]] = field(default_factory=list)
    """Statements, lambdas and comprehensions, for detectors of these nodes."""
    binds: dict[str, list[Bind]] = field(default_factory=dict)
    attributes: dict[str, list[Bind]] = field(default_factory=dict)
    """`self.name = value`"""
    returns: list[tuple[ast.Return, Site]] = field(default_factory=list)
    loops: list[tuple[Loop, Site]] = field(default_factory=list)
    yields: bool = False


class Scope:
    def __init__(self, module: Module, node: ast.AST, parent: Scope | None) -> None:
        self.module, self.node, self.parent = module, node, parent
        self.children: list[Scope] = []
        self.name: str = getattr(node, "name", "<lambda>" if isinstance(node, ast.Lambda) else "")
        if parent is not None:
            parent.children.append(self)

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, (*FUNCTIONS, ast.Lambda))

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @cached_property
    def owner(self) -> Scope | None:
        """The class of a method."""
        return self.parent if self.parent is not None and self.parent.is_class and self.is_function else None

    def around(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def extent(self) -> tuple[int, int]:
        if self.parent is None:
            return 1, 1 << 60
        first = self.node.lineno  # type: ignore[attr-defined]
        for decorator in getattr(self.node, "decorator_list", ()):
            first = min(first, decorator.lineno)
        return first, self.node.end_lineno or first  # type: ignore[attr-defined]

    @cached_property
    def arguments(self) -> list[str]:
        given = getattr(self.node, "args", None)
        if not isinstance(given, ast.arguments):
            return []
        return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]

    @cached_property
    def decorators(self) -> list[ast.expr]:
        return list(getattr(self.node, "decorator_list", ()))

    @cached_property
    def facts(self) -> Facts:
        return _Reader(self).read()

    @property
    def read(self) -> bool:
        """Whether its facts have been read."""
        return "facts" in self.__dict__

    def method(self, name: str) -> Scope | None:
        return next((child for child in self.children if child.name == name and child.is_function), None)


class _Reader:
    """Reads the statements and expressions of one scope, without those of nested scopes."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.facts = Facts()

    def read(self) -> Facts:
        node = self.scope.node
        here = Site(self.scope.module, self.scope)
        if isinstance(node, ast.Lambda):
            self._expression(node.body, here)
        else:
            self._block(node.body, here)  # type: ignore[attr-defined]
        return self.facts

    def _block(self, body: list[ast.stmt], here: Site) -> None:
        others = self.facts.others
        for statement in body:
            at = here.at(statement)
            others.append((statement, at))
            kind = type(statement)
            if kind is ast.Expr:  # these two are most of all statements
                if type(statement.value) is not ast.Constant:  # type: ignore[attr-defined]
                    self._expression(statement.value, at)  # type: ignore[attr-defined]
            elif kind is ast.Assign:
                value = statement.value  # type: ignore[attr-defined]
                self._expression(value, at)
                for target in statement.targets:  # type: ignore[attr-defined]
                    if type(target) is ast.Name:
                        self.facts.binds.setdefault(target.id, []).append(Bind(value, at))
                    else:
                        self._bind(target, value, at, "assign")
            else:
                self._statement(statement, at)

    def _statement(self, node: ast.stmt, here: Site) -> None:
        facts = self.facts
        kind = type(node)
        if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if node.value is not None:
                self._expression(node.value, here)
            how = "augment" if isinstance(node, ast.AugAssign) else "assign"
            self._bind(node.target, node.value, here, how)
        elif isinstance(node, ast.If):
            self._if(node, here)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._expression(node.iter, here)
            facts.loops.append((node, here))
            inner = here.inside(loops=(*here.loops, node))
            self._bind(node.target, node.iter, inner, "for")
            self._block(node.body, inner)
            self._block(node.orelse, here)
        elif isinstance(node, ast.While):
            facts.loops.append((node, here))
            inner = here.inside(loops=(*here.loops, node))
            self._expression(node.test, inner)
            self._block(node.body, inner)
            self._block(node.orelse, here)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._expression(item.context_expr, here)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, item.context_expr, here, "with")
            inner = here.inside(withs=(*here.withs, node)) if isinstance(node, ast.With) else here
            self._block(node.body, inner)
        elif isinstance(node, ast.Return):
            facts.returns.append((node, here))
            if node.value is not None:
                self._expression(node.value, here)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for expression in (*node.decorator_list, *getattr(node, "bases", ())):
                self._expression(expression, here)
        elif isinstance(node, ast.Try) or kind.__name__ == "TryStar":
            self._block(node.body, here)  # type: ignore[attr-defined]
            for number, handler in enumerate(node.handlers):  # type: ignore[attr-defined]
                self._block(handler.body, here.inside(arms=(*here.arms, (node, number + 1))))
            self._block(node.orelse, here)  # type: ignore[attr-defined]
            self._block(node.finalbody, here)  # type: ignore[attr-defined]
        elif kind.__name__ == "Match":
            self._expression(node.subject, here)  # type: ignore[attr-defined]
            for number, case in enumerate(node.cases):  # type: ignore[attr-defined]
                self._block(case.body, here.inside(arms=(*here.arms, (node, number))))
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._expression(child, here)

    def _if(self, node: ast.If, here: Site) -> None:
        """A chain of `elif` nests in the tree; here its arms are numbered in one row."""
        first, number = node, 0
        while True:
            self._expression(node.test, here)
            self._block(node.body, here.inside(arms=(*here.arms, (first, number))))
            number += 1
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node = node.orelse[0]
        self._block(node.orelse, here.inside(arms=(*here.arms, (first, number))))

    def _bind(self, target: ast.expr, value: ast.expr | None, here: Site, how: str, part: int | None = None) -> None:
        if isinstance(target, ast.Name):
            self.facts.binds.setdefault(target.id, []).append(Bind(value, here, how, part))
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for number, item in enumerate(target.elts):
                item = item.value if isinstance(item, ast.Starred) else item
                if same and how == "assign":
                    self._bind(item, value.elts[number], here, how)  # type: ignore[union-attr]
                else:
                    self._bind(item, value, here, how, number if part is None else part)
        elif isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"):
                self.facts.attributes.setdefault(target.attr, []).append(Bind(value, here, how, part))
            self._expression(target.value, here)
        elif isinstance(target, ast.Subscript):
            self._expression(target.value, here)
            self._expression(target.slice, here)

    def _expression(self, root: ast.expr, here: Site) -> None:
        stack: list[ast.AST] = [root]
        facts = self.facts
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.Attribute:
                stack.append(node.value)  # type: ignore[attr-defined]
            elif kind is ast.Call:
                facts.calls.append((node, here))  # type: ignore[arg-type]
                stack.append(node.func)  # type: ignore[attr-defined]
                stack.extend(node.args)  # type: ignore[attr-defined]
                for keyword in node.keywords:  # type: ignore[attr-defined]
                    stack.append(keyword.value)
            elif kind is ast.Lambda:
                self.scope.module.add_lambda(node, self.scope)  # type: ignore[arg-type]
                facts.others.append((node, here))
            elif isinstance(node, COMPREHENSIONS):
                facts.others.append((node, here))
                facts.loops.append((node, here))
                inner = here.inside(loops=(*here.loops, node))
                for number, part in enumerate(node.generators):
                    self._expression(part.iter, here if number == 0 else inner)
                    self._bind(part.target, part.iter, inner, "for")
                    for test in part.ifs:
                        self._expression(test, inner)
                if isinstance(node, ast.DictComp):
                    self._expression(node.key, inner)
                    self._expression(node.value, inner)
                else:
                    self._expression(node.elt, inner)
            elif kind is ast.NamedExpr:
                self._bind(node.target, node.value, here, "assign")  # type: ignore[attr-defined]
                stack.append(node.value)  # type: ignore[attr-defined]
            elif kind is ast.Subscript:
                stack.append(node.value)  # type: ignore[attr-defined]
                stack.append(node.slice)  # type: ignore[attr-defined]
            elif kind is ast.BinOp:
                stack.append(node.left)  # type: ignore[attr-defined]
                stack.append(node.right)  # type: ignore[attr-defined]
            elif kind is ast.Tuple or kind is ast.List:
                stack.extend(node.elts)  # type: ignore[attr-defined]
            else:
                if kind is ast.Yield or kind is ast.YieldFrom:
                    facts.yields = True
                stack.extend(ast.iter_child_nodes(node))


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
    def __init__(self, text: str, path: str = "", version: tuple[int, int] = (2, 16), is_pinned: bool = False) -> None:
        """`version`: the oldest TensorFlow that it is for; `is_pinned`: whether the user or the project says so."""
        self.text, self.path, self.version, self.is_pinned = text, path, version, is_pinned
        self.tree = ast.parse(text)
        self.names = Names()
        self.top = Scope(self, self.tree, None)
        self.scopes: list[Scope] = [self.top]
        self._lambdas: dict[ast.AST, Scope] = {}
        self._answers: dict[Hashable, Any] = {}
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

    def once(self, ask: Callable[..., _Answer], *about: Hashable) -> _Answer:
        """The answer of a function about parts of this file. It is asked once, however many findings need it: what goes
        through a whole loop for each call in it takes quadratic time."""
        key = (ask, *about)
        if key not in self._answers:
            self._answers[key] = ask(*about)
        answer: _Answer = self._answers[key]
        return answer

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
            defined = [child for child in scope.children if child.name == name and isinstance(child.node, FUNCTIONS)]
            if defined:
                # In the same scope a call means what was defined before it; from elsewhere, what is defined at last.
                before = [child for child in defined if scope is site.scope and child.node.lineno < site.line]  # type: ignore[attr-defined]
                return before[-1] if before else defined[-1]
            if scope.read and name in scope.facts.binds:
                return self._bound_lambda(scope.facts.binds[name])
        return None

    def _bound_lambda(self, binds: list[Bind]) -> Scope | None:
        """`scale = lambda x: x / 255`, where that is the only value of the name."""
        if len(binds) == 1 and binds[0].how == "assign" and isinstance(binds[0].value, ast.Lambda):
            return self.add_lambda(binds[0].value, binds[0].site.scope)
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
