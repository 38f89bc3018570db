"""Finds the statements of a training step in a loop, and how they could become a function."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatout.source import side_effects
from flatout.source.editing.dataflow import (
    FUNCTIONS,
    LOOPS,
    Flow,
    arguments,
    bindings,
    bound_in,
    called_name,
    definitions,
    free_names,
    names_in,
    reached,
    within,
)

_UPDATES = {"assign", "assign_add", "assign_sub", "apply_gradients", "apply", "update_state"}
"""Methods that end a step. A graph can run them too."""
_BUILDER = re.compile(r"_*(init|build|make|create|set_?up|compile|configure)")
"""Functions that set something up before the first step."""
_TO_PYTHON = {"numpy", "item", "tolist"}
_OF_PYTHON = {"float", "int", "bool", "str", "next", "iter"}
_DRAWS = {
    *("sample", "get_next", "get_batch", "next_batch", "sample_batch", "draw", "choice", "choices", "shuffle"),
    *("permutation", "normal", "standard_normal", "uniform", "random", "randint", "rand", "randn", "integers", "read"),
}
"""Calls with a new result each time. A trace would freeze the first one."""
_NOT_IN_A_FUNCTION = (ast.Return, ast.Break, ast.Continue, ast.Import, ast.ImportFrom, ast.ClassDef, *FUNCTIONS)
_HOST_OPS = re.compile(
    r"tensorflow\.(py_function|numpy_function|summary|print|io|data|random|constant|convert_to_tensor)\b"
)
"""Operations that should stay outside of the function."""


@dataclass(frozen=True)
class Step:
    body: tuple[ast.stmt, ...]
    given: tuple[str, ...]
    back: tuple[str, ...]
    method: ast.FunctionDef | None = None
    """The method around it, if it uses `self`: it becomes a method of the same class."""


@dataclass(frozen=True)
class _Level:
    """A statement in a block, and the node that contains the block."""

    owner: ast.AST
    block: list[ast.stmt]
    index: int


class Search:
    """Searches the step around a line of a module."""

    def __init__(self, module: ast.Module, line: int, forward: bool = False, unproven: bool = False) -> None:
        """`forward`: the step is a call of a model, without gradients; `unproven`: no trial will run the result."""
        self.module, self.forward, self.unproven = module, forward, unproven
        self.modules = side_effects.imported(module)
        self.levels = list(_levels(module, line))
        """From the module inwards, later only to the block of the step."""
        self.definitions = definitions(module)

    def found(self) -> Step | None:
        around = [level.owner for level in self.levels if isinstance(level.owner, FUNCTIONS)]
        if any(_is_traced(function) for function in around):
            return None
        starts = [n for n, level in enumerate(self.levels) if isinstance(level.owner, (*FUNCTIONS, *LOOPS, ast.Module))]
        if not starts:
            return None
        self.levels = self.levels[: starts[-1] + 1]
        if isinstance(self.levels[-1].owner, ast.Module):
            return None  # it runs once
        body = self._body(self.levels[-1])
        return self._step(body) if body else None

    def _body(self, level: _Level) -> list[ast.stmt]:
        """The statements from the tape, or the call of the model, to the last update that a graph can run."""
        block, last = level.block, level.index
        starts = [last] if self.forward and isinstance(block[last], ast.Assign) else []
        if not self.forward:
            starts = [index for index in range(last + 1) if self._has_tape(block[index])]
        first = next((index for index in starts if self._fits(block[index : last + 1])), None)
        if first is None:
            return []
        ends = last
        for index in range(last + 1, len(block)):
            if not self._fits(block[first : index + 1]):
                break
            pure = self._is_pure(block[index])
            if self._updates(block[index], block[first:index]) or (pure and self.forward):
                ends = index
            elif not pure:
                break
        while first > 0 and self._is_pure(block[first - 1]) and self._fits([block[first - 1]]):
            first -= 1
        body = block[first : ends + 1]
        before = block[first - 1] if first else None
        after = block[ends + 1] if ends + 1 < len(block) else None
        if (before is not None and before.end_lineno == body[0].lineno) or level.owner.lineno == body[0].lineno:  # type: ignore[attr-defined]
            return []
        return [] if after is not None and after.lineno == body[-1].end_lineno else body

    def _has_tape(self, statement: ast.stmt, depth: int = 0) -> bool:
        """Also if a function of this file that it calls has one."""
        for node in ast.walk(statement):
            if isinstance(node, ast.With) and any(
                called_name(item.context_expr) == "GradientTape" for item in node.items
            ):
                return True
            if isinstance(node, ast.Call) and depth < 2:
                for function in self.definitions.get(called_name(node.func), ()):
                    if not _is_traced(function) and any(self._has_tape(inner, depth + 1) for inner in function.body):
                        return True
        return False

    def _fits(self, body: Sequence[ast.stmt], seen: frozenset[str] = frozenset()) -> bool:
        if side_effects.reason_against_block(body, self.modules):
            return False
        own = bound_in(body)
        inside = {id(inner) for loop in _all(body) if isinstance(loop, LOOPS) for inner in ast.walk(loop)}
        for node in _all(body):
            if isinstance(node, (ast.Break, ast.Continue)) and id(node) in inside:
                continue
            if isinstance(node, _NOT_IN_A_FUNCTION) and not (seen and isinstance(node, ast.Return)):
                return False
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno and not seen:
                return False  # indenting it would change its value
            if isinstance(node, ast.Call) and not self._graph_can(node, own, seen):
                return False
        return True

    def _graph_can(self, call: ast.Call, own: set[str], seen: frozenset[str]) -> bool:
        name, dotted = called_name(call.func), self._dotted(call.func)
        if isinstance(call.func, ast.Name) and name in _OF_PYTHON:
            return False
        drawn = name in _TO_PYTHON or (name in _DRAWS and side_effects.root(call.func) not in own)
        if dotted.startswith("numpy.") or (drawn and isinstance(call.func, ast.Attribute) and not dotted):
            return False
        if name in seen or len(seen) > 4:
            return True
        called = [function for function in self.definitions.get(name, ()) if not _is_traced(function)]
        return all(self._fits(function.body, seen | {name}) for function in called)

    def _updates(self, statement: ast.stmt, before: Sequence[ast.stmt]) -> bool:
        """Whether a statement belongs to the step: another update, a metric, or `del` of a name of the step."""
        if isinstance(statement, ast.Delete):
            return set(names_in(statement)) <= bound_in(before)
        if isinstance(statement, (ast.With, ast.For)) and self._has_tape(statement):
            return True
        if isinstance(statement, ast.For):
            return all(self._updates(inner, before) for inner in statement.body)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        called = statement.value.func
        if isinstance(called, ast.Attribute) and called.attr in _UPDATES:
            return True
        return isinstance(called, ast.Name) and self._is_metric(called.id)

    def _is_metric(self, name: str) -> bool:
        made = [
            node.value
            for node in ast.walk(self.module)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name in names_in(node.targets[0])
        ]
        return bool(made) and all(".metrics." in self._dotted(call.func) for call in made)

    def _is_pure(self, statement: ast.stmt) -> bool:
        """Whether it assigns what TensorFlow computes from tensors."""
        if not isinstance(statement, ast.Assign) or not all(_is_plain(target) for target in statement.targets):
            return False
        calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        dotted = [self._dotted(call.func) for call in calls]
        return bool(calls) and all(
            (name.startswith("tensorflow.") and not _HOST_OPS.match(name)) or called_name(call.func) == "gradient"
            for name, call in zip(dotted, calls, strict=True)
        )

    def _step(self, body: list[ast.stmt]) -> Step | None:
        flow = Flow(body)
        live = self._live(body)
        back = [name for name in flow.written if name in live]
        opened = {name for node in _all(body) if isinstance(node, ast.With) for name in _opened(node)}
        if not set(back) <= flow.certain or opened & set(back) or set(flow.written) & self._declared():
            return None
        given = self._given(flow)
        if given is None or self._changes_elsewhere(body, flow, given) or len(given) > 12:
            return None
        if self.unproven and self._may_be_arrays(body, set(given)):
            return None
        method = self._method()
        if method is not None and arguments(method)[0] not in given:
            method = None
        return Step(tuple(body), tuple(given), tuple(back), method)

    def _method(self) -> ast.FunctionDef | None:
        """The method of a class that directly contains the step."""
        owners = [level.owner for level in self.levels]
        for index, owner in enumerate(owners):
            if isinstance(owner, FUNCTIONS):
                plain = isinstance(owner, ast.FunctionDef) and not owner.decorator_list and arguments(owner)[:1]
                held = isinstance(owners[index - 1], ast.ClassDef) and len(self._scopes()) == 2
                return owner if plain and held and isinstance(owner, ast.FunctionDef) else None
        return None

    def _live(self, body: Sequence[ast.stmt]) -> set[str]:
        """Names that may be read after the step, in this iteration, in later ones, or after the loops."""
        found: set[str] = set()
        end = body[-1].end_lineno or 0
        for level in reversed(self.levels):
            found |= set(Flow(item for item in level.block if item.lineno > end).read)
            if isinstance(level.owner, LOOPS):
                found |= set(Flow([level.owner]).read)
                found |= set(Flow(level.owner.orelse).read)
            if isinstance(level.owner, ast.Try):
                found |= set(Flow([*level.owner.finalbody, *level.owner.orelse]).read)
            if isinstance(level.owner, FUNCTIONS):
                break
        scope = self._scopes()[0]
        for node in within(scope.body):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                found |= set(free_names(node))
        return found

    def _scopes(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Module]:
        """Functions around the step, innermost first, and the module."""
        owners = [level.owner for level in self.levels]
        return [owner for owner in reversed(owners) if isinstance(owner, (*FUNCTIONS, ast.Module))]

    def _declared(self) -> set[str]:
        declared = (node for node in ast.walk(self.module) if isinstance(node, (ast.Global, ast.Nonlocal)))
        return {name for node in declared for name in node.names}

    def _given(self, flow: Flow) -> list[str] | None:
        """Names that change between iterations, or are local to the function around; None if one is a counter."""
        scopes = self._scopes()
        loops = [level.owner for level in self.levels if isinstance(level.owner, LOOPS)]
        own = set().union(*({*arguments(f), *bound_in(f.body)} for f in scopes if not isinstance(f, ast.Module)))
        local_imports = {
            alias.asname or alias.name.split(".")[0]
            for scope in scopes[:-1]
            for node in within(scope.body)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        changing = bound_in(loops) if len(scopes) == 1 else set()
        written = bindings(self.module.body)
        declared = self._declared()
        given: list[str] = []
        for name in flow.read:
            if name in own:
                if name in local_imports:
                    return None
                given.append(name)
            elif name in self.modules:
                continue
            elif name in changing or name in declared or written.count(name) > 1:
                given.append(name)
            elif name not in written and not hasattr(builtins, name):
                return None  # from a star import, or undefined
        counters = _counters(loops[-1]) if loops else set()
        return None if counters & set(given) else given

    def _changes_elsewhere(self, body: Sequence[ast.stmt], flow: Flow, given: Sequence[str]) -> bool:
        """Whether something that a trace would freeze is set or filled elsewhere in the file."""
        lines = range(body[0].lineno, (body[-1].end_lineno or 0) + 1)
        attributes = {node.attr for node in reached(body, self.definitions) if isinstance(node, ast.Attribute)}
        kept = set(flow.read) - set(given)
        builders = (item for name, found in self.definitions.items() if _BUILDER.match(name) for item in found)
        made = {id(node) for function in builders for node in ast.walk(function)}
        for node in ast.walk(self.module):
            if getattr(node, "lineno", 0) in lines or id(node) in made:
                continue
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in attributes:
                return True
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and side_effects.root(node) in kept:
                return True
        inside = (node for loop in self.levels if isinstance(loop.owner, LOOPS) for node in ast.walk(loop.owner))
        return any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "insert", "pop", "clear", "update", "add")
            and node.lineno not in lines
            and side_effects.root(node.func) in kept
            for node in inside
        )

    def _may_be_arrays(self, body: Sequence[ast.stmt], given: set[str]) -> bool:
        """Whether an argument is a NumPy array or an index: as a tensor its type may not be accepted."""
        for node in ast.walk(self.module):
            value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
            targets = (
                node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
            )
            if value is None or given.isdisjoint(name for target in targets for name in names_in(target)):
                continue
            inner = (part for part in ast.walk(value) if isinstance(part, (ast.Name, ast.Attribute)))
            if any(f"{self._dotted(part)}.".startswith("numpy.") for part in inner):
                return True
        return any(isinstance(node, ast.Subscript) and given & set(names_in(node.slice)) for node in _all(body))

    def _dotted(self, node: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return ""
        return ".".join([self.modules[node.id], *reversed(parts)])


def _levels(module: ast.Module, line: int) -> Iterator[_Level]:
    """The blocks around a line, outermost first."""
    owner: ast.AST | None = module
    while owner is not None:
        inner = None
        found = [getattr(owner, field, None) for field in ("body", "orelse", "finalbody")]
        found += [handler.body for handler in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ()))]
        for block in found:
            if not isinstance(block, list):
                continue
            for index, statement in enumerate(block):
                if statement.lineno <= line <= (statement.end_lineno or 0):
                    yield _Level(owner, block, index)
                    inner = statement
        owner = inner


def _all(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in body for node in ast.walk(statement))


def _is_traced(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("function" in ast.unparse(decorator) for decorator in function.decorator_list)


def _counters(loop: ast.AST) -> set[str]:
    """Python numbers that a loop counts: as arguments of a traced function, each value is traced again."""
    found: set[str] = set()
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        target = loop.target
        if called_name(loop.iter.func) in ("range", "trange"):
            found |= set(names_in(target))
        elif called_name(loop.iter.func) == "enumerate" and isinstance(target, ast.Tuple):
            found |= set(names_in(target.elts[0]))
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant):
            found |= set(names_in(node.target))
    return found


def _opened(node: ast.With) -> list[str]:
    return [name for item in node.items if item.optional_vars is not None for name in names_in(item.optional_vars)]


def _is_plain(target: ast.expr) -> bool:
    return all(isinstance(node, (ast.Name, ast.Tuple, ast.Store)) for node in ast.walk(target))
