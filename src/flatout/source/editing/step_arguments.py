"""Arguments and results of a function that is made of some statements of a loop."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from flatout.source import side_effects
from flatout.source.editing import python_values, several_objects
from flatout.source.editing.dataflow import (
    FUNCTIONS,
    LOOPS,
    Flow,
    arguments,
    bindings,
    bound_in,
    called_name,
    free_names,
    names_in,
    reached,
    within,
)
from flatout.source.editing.graph_fit import GraphFit, Obstacle, every
from flatout.source.editing.value_kinds import NUMBERS, Kinds

_BUILDER = re.compile(r"_*(init|build|make|create|set_?up|compile|configure)")
"""Functions that set something up before the first step."""
_MAKES = re.compile(r"_*(build|make|create|get|define)(_|$)")
_GROWS = ("append", "extend", "insert", "pop", "clear", "update", "add")
_UPDATED = {"trainable_variables", "trainable_weights", "apply_gradients", "minimize", "update_state"}
"""Attributes that models, optimizers and metrics are asked for."""
MOST = 12
"""More arguments than this are no function that anybody would write."""


@dataclass(frozen=True)
class Level:
    """A statement in a block, and the node that contains the block."""

    owner: ast.AST
    block: list[ast.stmt]
    index: int


class Surroundings:
    """What is around the statements, outermost level first."""

    def __init__(self, fit: GraphFit, levels: Sequence[Level], others: Iterable[GraphFit] = ()) -> None:
        """`others`: the program's other files."""
        self.fit, self.module, self.levels = fit, fit.module, list(levels)
        self.kinds = Kinds(fit, others)
        self.loops = [level.owner for level in self.levels if isinstance(level.owner, LOOPS)]
        owners = [level.owner for level in self.levels]
        self.scopes = [owner for owner in reversed(owners) if isinstance(owner, (*FUNCTIONS, ast.Module))]
        """Functions around the step, innermost first, and the module."""

    def method(self) -> ast.FunctionDef | None:
        """The method of a class that directly contains the step."""
        owners = [level.owner for level in self.levels]
        for index, owner in enumerate(owners):
            if isinstance(owner, FUNCTIONS):
                plain = isinstance(owner, ast.FunctionDef) and not owner.decorator_list and arguments(owner)[:1]
                held = isinstance(owners[index - 1], ast.ClassDef) and len(self.scopes) == 2
                return owner if plain and held and isinstance(owner, ast.FunctionDef) else None
        return None

    def live(self, end: int) -> set[str]:
        """Names that may be read after a line, in this iteration, in later ones, or after the loops."""
        found: set[str] = set()
        for level in reversed(self.levels):
            found |= set(Flow(item for item in level.block if item.lineno > end).read)
            if isinstance(level.owner, LOOPS):
                found |= set(Flow([level.owner]).read)
                found |= set(Flow(level.owner.orelse).read)
            if isinstance(level.owner, ast.Try):
                for block in (*(handler.body for handler in level.owner.handlers), level.owner.orelse):
                    found |= set(Flow(block).read)
                found |= set(Flow(level.owner.finalbody).read)
            if isinstance(level.owner, FUNCTIONS):
                break
        for node in within(self.scopes[0].body):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                found |= set(free_names(node))
        return found

    def has_no_value(self, name: str, statements: Sequence[ast.stmt]) -> bool:
        """Whether a local name is assigned nowhere but in these statements, which are in no loop: without them,
        reading it is an error."""
        function = self.scopes[0]
        if not isinstance(function, FUNCTIONS) or self.loops or name in {*arguments(function), *self.declared()}:
            return False
        return bindings(function.body).count(name) == bindings(statements).count(name)

    def declared(self) -> set[str]:
        found = (node for node in ast.walk(self.module) if isinstance(node, (ast.Global, ast.Nonlocal)))
        return {name for node in found for name in node.names}

    def given(self, flow: Flow) -> list[str] | Obstacle:
        """Names that change between iterations, or are local to the function around."""
        own = set().union(*({*arguments(f), *bound_in(f.body)} for f in self.scopes if not isinstance(f, ast.Module)))
        local_imports = {
            alias.asname or alias.name.split(".")[0]
            for scope in self.scopes[:-1]
            for node in within(scope.body)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        changing = bound_in(self.loops) if len(self.scopes) == 1 else set()
        written = bindings(self.module.body)
        declared = self.declared()
        line = self.levels[-1].block[self.levels[-1].index].lineno
        found: list[str] = []
        for name in flow.read:
            if name in own:
                if name in local_imports:
                    return Obstacle(line, f"uses {name}, which is imported in the function around it")
                found.append(name)
            elif name in self.fit.modules:
                continue
            elif name in changing or name in declared or written.count(name) > 1:
                found.append(name)
            elif name not in written and not hasattr(builtins, name) and not self._star_imports():
                return Obstacle(line, f"uses {name}, which this file neither defines nor imports by name")
        return found

    def _star_imports(self) -> bool:
        found = (node for node in ast.walk(self.module) if isinstance(node, ast.ImportFrom))
        return any(alias.name == "*" for node in found for alias in node.names)

    def made_anew(self, names: Iterable[str]) -> str | None:
        """The one of these names that is another function each time, for each of which the step would be traced."""
        around = self.loops[-1] if self.loops else self.scopes[0]
        nodes = [] if isinstance(around, ast.Module) else list(within(around.body))
        made = {node.name for node in nodes if isinstance(node, FUNCTIONS)}
        made |= {
            called_name(target)
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            for target in node.targets
        }
        return next((name for name in names if name in made), None)

    def nested(self) -> ast.stmt | None:
        """The statement of the function around the step above which a function inside of it can be defined.

        None where there is no loop in that function, or where it is called again and again: each call would trace.
        """
        if len(self.scopes) < 2 or not self.loops:
            return None
        scope = self.scopes[0]
        level = next(level for level in self.levels if level.owner is scope)
        if not isinstance(level.block[level.index], (*LOOPS, ast.With, ast.Try, ast.If)):
            return None
        loops = [node for node in ast.walk(self.module) if isinstance(node, LOOPS)]
        calls = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call))
        name = getattr(scope, "name", "")
        return None if any(called_name(call.func) == name for call in calls) else level.block[level.index]

    def beside_objects(self, flow: Flow, body: Sequence[ast.stmt]) -> ast.stmt | Obstacle | None:
        """The statement with the step in the block that makes the step's models or optimizers; None at module level.

        A traced function may create variables in its first call only. Where a loop or a function makes new optimizers,
        or goes through several, each of them needs a function of its own, defined below the line that makes it.
        """
        updated = _updated(body) & set(flow.read)
        objects = {name for name in flow.read if self._is_object(name) or self.is_variables(name)} | updated
        for depth in range(len(self.levels) - 1, 0, -1):
            level = self.levels[depth]
            others = [statement for index, statement in enumerate(level.block) if index != level.index]
            of_loop = set(names_in(level.owner.target)) if isinstance(level.owner, (ast.For, ast.AsyncFor)) else set()
            innermost = bool(self.loops) and level.owner is self.loops[-1]
            another = sorted(updated & (of_loop | bound_in(others))) if innermost else []
            if another:
                return Obstacle(body[0].lineno, f"begins a step that updates another {another[0]} each time")
            if objects & (bound_in(others) | of_loop) and depth < len(self.levels) - 1:
                return level.block[level.index]
            if isinstance(level.owner, FUNCTIONS):
                return self._beside_arguments(level, updated)
        return None

    def _beside_arguments(self, level: Level, updated: set[str]) -> ast.stmt | Obstacle | None:
        """The same where the function around the step is given another model or optimizer in another call."""
        function = level.owner
        assert isinstance(function, FUNCTIONS)
        modules = {str(number): fit.module for number, fit in enumerate(self.kinds.fits)}
        taken = updated & set(arguments(function))
        other = next(several_objects.others(modules, function, taken), None)
        if other is None:
            return None
        statement = level.block[level.index]
        if any(loop is statement or loop in ast.walk(statement) for loop in self.loops):
            return statement
        return Obstacle(statement.lineno, f"is in a function whose {other.name} is another object in another call")

    def _is_object(self, name: str) -> bool:
        """Whether a name is bound to a new object: `Adam(…)`, `build_model()`."""
        parts = [part for value in self.bound_to(name) for part in getattr(value, "elts", [value])]
        made = [called_name(part) for part in parts if isinstance(part, ast.Call)]
        return any(found[:1].isupper() or _MAKES.match(found) for found in made)

    def is_variables(self, name: str) -> bool:
        """Whether a name is bound to the variables of a model: no arguments of a graph."""
        return any(map(python_values.are_variables, self.bound_to(name)))

    def given_inside(self, flow: Flow, above: ast.stmt) -> list[str]:
        """The arguments of a function that is defined above a statement: what changes inside of that."""
        changing = bound_in([above]) | self.declared()
        return [name for name in flow.read if name in changing]

    def is_options(self, name: str) -> bool:
        """Whether a name is bound to parsed options, which cannot be an argument of a traced function."""
        return any(isinstance(value, ast.Call) and "parse" in called_name(value.func) for value in self.bound_to(name))

    def counters(self) -> set[str]:
        """Python numbers that the innermost loop counts or computes: each value would be traced again."""
        return counters(self.loops[-1]) if self.loops else set()

    def changes_elsewhere(
        self, kept: Sequence[ast.stmt], flow: Flow, given: Sequence[str], by_project: bool = False
    ) -> Obstacle | None:
        """Something that a trace would freeze and that is set or filled elsewhere in the file.

        `by_project`: attributes that another function sets (`def load(self, path): self.model = …`) are looked at
        elsewhere, with what calls that function.
        """
        inside = {id(node) for node in every(kept)}
        apart = self._set_in_other_functions() if by_project else set()
        attributes = {node.attr for node in reached(kept, self.fit.meant) if isinstance(node, ast.Attribute)}
        if attributes & {"trainable_variables", "trainable_weights"} and self.loops:
            attributes |= {"trainable"} & self._set_in_loops()
        free = set(flow.read) - set(given)
        definitions = self.fit.definitions
        builders = (item for name, found in definitions.items() if _BUILDER.match(name) for item in found)
        made = {id(node) for function in builders for node in ast.walk(function)}
        for node in ast.walk(self.module):
            if id(node) in inside or id(node) in made or id(node) in apart:
                continue
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in attributes:
                what = f"sets {ast.unparse(node)}, which the step reads: a trace would freeze it"
                return Obstacle(node.lineno, what, node.attr)
            stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            if stored and side_effects.root(node) in free and _is_of(node, attributes):  # type: ignore[arg-type]
                return Obstacle(node.lineno, f"fills {ast.unparse(node)}, which the step reads")  # type: ignore[attr-defined]
        for node in (inner for loop in self.loops for inner in ast.walk(loop)):
            grows = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS
            if not grows or id(node) in inside or not _is_of(node.func.value, attributes):  # type: ignore[attr-defined]
                continue
            if side_effects.root(node) in free:  # type: ignore[arg-type]
                return Obstacle(node.lineno, f"changes {ast.unparse(node.func)}, which the step reads")  # type: ignore[attr-defined]
        return None

    def _set_in_other_functions(self) -> set[int]:
        """Attributes that functions set which are not around the step."""
        functions = [node for node in ast.walk(self.module) if isinstance(node, FUNCTIONS) and node not in self.scopes]
        inner = (node for function in functions for node in ast.walk(function))
        return {id(node) for node in inner if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}

    def _set_in_loops(self) -> set[str]:
        return {
            node.attr
            for loop in self.loops
            for node in ast.walk(loop)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }

    def bound_to(self, name: str) -> Iterator[ast.expr]:
        """The expressions that a name is bound to anywhere in the file, a loop's by what it iterates."""
        yield from self.fit.bound.get(name, ())

    def is_array(self, name: str) -> bool:
        return self.kinds.is_array(name)

    def is_number(self, name: str) -> bool:
        """Whether a name changes in the loops, or is an argument or a local of the function around, and is a Python
        number: a reward, a share, what `float` returns."""
        function = self.scopes[0]
        if isinstance(function, FUNCTIONS) and name in arguments(function) and name not in bound_in(function.body):
            return self.kinds.is_given_numbers(function, name)
        if self.loops:
            return self.kinds.is_number(name, self.loops)
        if isinstance(function, ast.Module):
            return False
        changes = any(not isinstance(value, ast.Constant) for value in self.bound_to(name))
        return changes and self.kinds.is_number(name, self.scopes[:1])


def _is_of(changed: ast.expr, attributes: set[str]) -> bool:
    """Whether `self.seen[name]` is of one of these attributes; so is what is no attribute."""
    while isinstance(changed, ast.Subscript):
        changed = changed.value
    return not isinstance(changed, ast.Attribute) or changed.attr in attributes


def _updated(body: Sequence[ast.stmt]) -> set[str]:
    """The names of models and optimizers whose variables a step asks for or updates."""
    asked = (node.value for node in every(body) if isinstance(node, ast.Attribute) and node.attr in _UPDATED)
    return {value.id for value in asked if isinstance(value, ast.Name)}


def counters(loop: ast.AST) -> set[str]:
    found: set[str] = set()
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        target = loop.target
        if called_name(loop.iter.func) in ("range", "trange"):
            found |= set(names_in(target))
        elif called_name(loop.iter.func) == "enumerate" and isinstance(target, ast.Tuple):
            found |= set(names_in(target.elts[0]))
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.target, ast.Name)
        ):
            found.add(node.target.id)
    while True:  # numbers that are computed from those
        more = {
            node.targets[0].id
            for node in ast.walk(loop)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and len(node.targets) == 1
            and set(names_in(node.value)) & found
            and _is_number(node.value, found)
        }
        if more <= found:
            return found
        found |= more


def _is_number(node: ast.expr, known: set[str]) -> bool:
    """Arithmetic of Python numbers: `min(1.0, step / warm_up)`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            dotted = ast.unparse(inner.func)
            if dotted not in NUMBERS and not dotted.startswith("math."):
                return False
        elif isinstance(inner, (ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.JoinedStr, ast.Lambda)):
            return False
    return any(isinstance(inner, ast.Name) and inner.id in known for inner in ast.walk(node))
