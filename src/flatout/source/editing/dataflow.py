"""The names that statements read and write: the arguments and results of a function made of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Flow:
    """Follows statements in their order. Dictionaries keep the order in which names occur."""

    def __init__(self, statements: Iterable[ast.stmt] = ()) -> None:
        self.read: dict[str, None] = {}
        """Names whose value comes from outside."""
        self.written: dict[str, None] = {}
        self.certain: set[str] = set()
        """Names that are assigned on every path."""
        self.block(statements)

    def block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If):
            self.load(node.test)
            before = set(self.certain)
            self.block(node.body)
            after, self.certain = self.certain, before
            self.block(node.orelse)
            self.certain &= after
        elif isinstance(node, LOOPS):
            self.load(node.test if isinstance(node, ast.While) else node.iter)
            before = set(self.certain)
            if not isinstance(node, ast.While):
                self.store(node.target)
            self.block(node.body)
            self.block(node.orelse)
            self.certain = before  # the loop may have no iteration
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.load(item.context_expr)
                if item.optional_vars is not None:
                    self.store(item.optional_vars)
            self.block(node.body)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for name in free_names(node):
                self._read(name)
            self._write(node.name)
        elif isinstance(node, ast.Assign):
            self.load(node.value)
            for target in node.targets:
                self.store(target)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if isinstance(node, ast.AugAssign):
                for name in names_in(node.target):
                    self._read(name)
            if node.value is not None:
                self.load(node.value)
                self.store(node.target)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                self._write(alias.asname or alias.name.split(".")[0])
        elif isinstance(node, (ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Delete)):
            self.load(node)
            if isinstance(node, ast.Delete):
                self.certain -= set(names_in(node))
        elif isinstance(node, ast.Try):
            self._try(node)
        else:  # `match`: nothing in it is certain
            before = set(self.certain)
            self.load(node)
            for name in bound_in([node]):
                self._write(name)
            self.certain = before

    def _try(self, node: ast.Try) -> None:
        """An exception may come from any statement: in a handler nothing of the body is certain, nor behind a handler
        that goes on."""
        before = set(self.certain)
        self.block(node.body)
        self.block(node.orelse)
        ends = [self.certain]
        for handler in node.handlers:
            self.certain = set(before)
            if handler.type is not None:
                self.load(handler.type)
            if handler.name:
                self._write(handler.name)
            self.block(handler.body)
            if handler.name:
                self.certain.discard(handler.name)  # Python deletes it
            if not isinstance(handler.body[-1], _LEAVING):
                ends.append(self.certain)
        self.certain = before
        self.block(node.finalbody)
        self.certain |= set.intersection(*ends)

    def load(self, node: ast.AST) -> None:
        bound = [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        for name in sorted(_loaded(node), key=_place):
            if not any(inner.target.id == name.id and _place(inner) < _place(name) for inner in bound):
                self._read(name.id)
        for inner in bound:
            self.store(inner.target)

    def store(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._write(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.store(item)
        elif isinstance(target, ast.Starred):
            self.store(target.value)
        else:
            self.load(target)

    def _read(self, name: str) -> None:
        if name not in self.certain:
            self.read.setdefault(name)

    def _write(self, name: str) -> None:
        self.written.setdefault(name)
        self.certain.add(name)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _loaded(node: ast.AST, hidden: frozenset[str] = frozenset()) -> Iterator[ast.Name]:
    """The names that are read, without those that a comprehension or a lambda binds where they are read.

    `x` of `tf.map_fn(lambda x: model(x), x)` is read: the last one is that of the statement.
    """
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Store) and node.id not in hidden:
            yield node
    elif isinstance(node, ast.Lambda):
        yield from _loaded(node.args, hidden)
        yield from _loaded(node.body, hidden | set(arguments(node)))
    elif isinstance(node, _COMPREHENSIONS):
        inside = hidden
        for part in node.generators:
            yield from _loaded(part.iter, inside)
            inside |= set(names_in(part.target))
            for test in part.ifs:
                yield from _loaded(test, inside)
        for result in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            yield from _loaded(result, inside)
    elif not isinstance(node, (*FUNCTIONS, ast.ClassDef)):  # those have `free_names`
        for child in ast.iter_child_nodes(node):
            yield from _loaded(child, hidden)


def names_in(node: ast.AST) -> list[str]:
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [item.arg for item in found]


def has_no_hash(holder: ast.ClassDef) -> bool:
    """Whether Python cannot hash the objects of a class: TensorFlow keeps a graph of a method for each object."""
    own = {node.name for node in holder.body if isinstance(node, FUNCTIONS)}
    if "__hash__" in own:
        return False
    for decorator in holder.decorator_list:
        given = {item.arg: ast.unparse(item.value) for item in getattr(decorator, "keywords", ())}
        keeps = given.get("eq") == "False" or "True" in (given.get("frozen"), given.get("unsafe_hash"))
        if called_name(decorator) == "dataclass" and not keeps:
            return True
    return "__eq__" in own


def within(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of statements in the same scope: nested functions and classes are yielded, not entered."""
    waiting = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def bindings(statements: Sequence[ast.AST]) -> list[str]:
    """Names that statements of one scope bind, one entry per binding."""
    found: list[str] = []
    hidden = {id(part) for node in within(statements) if isinstance(node, _COMPREHENSIONS) for part in _targets(node)}
    for node in within(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in hidden:
            found.append(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [alias.asname or alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.append(node.name)
    return found


def _targets(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterator[ast.AST]:
    return (inner for part in node.generators for inner in ast.walk(part.target))


def bound_in(statements: Sequence[ast.AST]) -> set[str]:
    return set(bindings(statements))


def free_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    """Names that a definition uses from outside."""
    own = bound_in(function.body)
    outside: list[ast.AST] = [*function.decorator_list]
    if not isinstance(function, ast.ClassDef):
        own |= set(arguments(function))
        outside.append(function.args)  # defaults are those of the place around it
    nodes = list(within(function.body))
    own -= {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    found = dict.fromkeys(name.id for part in outside for name in _loaded(part))
    found.update(dict.fromkeys(name.id for part in function.body for name in _loaded(part) if name.id not in own))
    for node in nodes:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.update(dict.fromkeys(name for name in free_names(node) if name not in own))
    return list(found)


def called_name(node: ast.expr) -> str:
    """`tf.data.Dataset.map` → `map`, also for a call of it; empty if there is no name."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


Definitions = dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]


def definitions(module: ast.Module) -> Definitions:
    """All functions and methods of a file, by name."""
    found: Definitions = {}
    for node in ast.walk(module):
        if isinstance(node, FUNCTIONS):
            found.setdefault(node.name, []).append(node)
    return found


def reached(
    statements: Iterable[ast.stmt], meant: Callable[[ast.Call], Iterable[ast.FunctionDef | ast.AsyncFunctionDef]]
) -> Iterator[ast.AST]:
    """All nodes of statements, and of the functions that `meant` names for their calls."""
    waiting: list[ast.stmt] = list(statements)
    seen: set[int] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            yield node
            for function in meant(node) if isinstance(node, ast.Call) else ():
                if id(function) not in seen:
                    seen.add(id(function))
                    waiting += function.body
