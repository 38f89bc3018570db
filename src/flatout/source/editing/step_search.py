"""Finds the statements of a training step in a loop, and how they could become a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flatout.source.editing import python_values, shape_reads, tensor_loops
from flatout.source.editing.dataflow import (
    FUNCTIONS,
    LOOPS,
    Flow,
    arguments,
    bound_in,
    called_name,
    has_no_hash,
    names_in,
    reached,
)
from flatout.source.editing.graph_fit import UPDATES, Obstacle, every, fit_of, is_tape, is_traced, opened
from flatout.source.editing.step_arguments import MOST, Level, Surroundings
from flatout.source.editing.step_blocks import is_plain, levels_of, names_only, with_lists, without_moved
from flatout.source.editing.step_split import NotSplit, Split, split
from flatout.source.editing.step_values import tensors

_OUTSIDE_OPS = re.compile(
    r"tensorflow\.(py_function|numpy_function|summary|print|io|data|random|constant|convert_to_tensor)\b"
)
"""Operations with which no function begins: what they make is its argument."""
_NOTHING = re.compile(r"tensorflow\.(summary|print|io|data)\b")


@dataclass(frozen=True)
class Argument:
    name: str
    value: str
    """What the call passes: the name, or a tensor made of a Python number."""


@dataclass(frozen=True)
class Step:
    body: tuple[ast.stmt, ...]
    """All statements that the call replaces."""
    split: Split
    given: tuple[Argument, ...]
    back: tuple[str, ...]
    method: ast.FunctionDef | None = None
    """The method around it, if it uses `self`: it becomes a method of the same class."""
    above: ast.stmt | None = None
    """Defined above this statement of the function around it; above the function or the loop where it is None."""
    relaxed: bool = True
    """Whether shapes may be unknown: not where Python computes with them."""
    unset: tuple[str, ...] = ()
    """Results that the step may leave unset, which are None then."""


class Search:
    """Searches the step around a line of a module. `refusal` says why there is none."""

    def __init__(
        self,
        module: ast.Module,
        line: int,
        forward: bool = False,
        unproven: bool = False,
        others: Mapping[str, ast.Module] | None = None,
        traced: bool = False,
        changing: Collection[str] = (),
    ) -> None:
        """`forward`: the step is a call of a model, without gradients; `unproven`: no trial will run the result;
        `others`: the program's other files. Whoever gives them looks in them for what other functions set
        (`frozen_state`). `traced`: the step is a call of a function that is traced already. `changing`: names that
        have another value in each step."""
        self.module, self.forward, self.unproven, self.others = module, forward, unproven, others
        self.traced, self.changing = traced, frozenset(changing)
        self.fit = fit_of(module)
        self.levels = list(levels_of(module, line))
        """From the module inwards."""
        self.refusal: Obstacle | None = None
        self.refused: list[ast.stmt] = []
        """The statements that would be the step but for the refusal, where they were found."""

    def found(self) -> Step | None:
        functions = [level.owner for level in self.levels if isinstance(level.owner, FUNCTIONS)]
        if any(is_traced(function) for function in functions):
            return None
        for depth in self._depths():
            level = self.levels[depth]
            try:
                first, ends = self._extents(level)
            except NotSplit as error:
                # Further in there are fewer statements; what is in their way is nearest to the step.
                self.refusal, self.refused = error.obstacle, []
                continue
            refused: tuple[Obstacle, list[ast.stmt]] | None = None
            for end in ends:  # where a step of several updates is in the way of itself, the first ones may be one
                region = level.block[first : end + 1]
                try:
                    return self._step(self._around(depth + 1), *self._region(level, first, end))
                except NotSplit as error:
                    refused = refused or (error.obstacle, region)
                    if error.obstacle.state:
                        break  # an argument of the whole, rather than a shorter step
            if refused is not None:
                self.refusal, self.refused = refused
        return None

    def _around(self, depth: int) -> Surroundings:
        return Surroundings(self.fit, self.levels[:depth], map(fit_of, (self.others or {}).values()))

    def update(self) -> Step | None:
        """The update of the weights on the line alone, as a function of the gradients."""
        functions = [level.owner for level in self.levels if isinstance(level.owner, FUNCTIONS)]
        level = self.levels[-1] if self.levels else None
        if level is None or any(is_traced(function) for function in functions):
            return None
        statement = level.block[level.index]
        value = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(value, ast.Call) or called_name(value.func) not in ("apply_gradients", "apply"):
            return None
        held = {called_name(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
        if held - {"apply_gradients", "apply", "zip"}:
            return None
        if called_name(value.func) == "apply_gradients" and "zip" not in held:
            return None  # pairs that were made elsewhere may be used up by the first trace
        try:
            return self._step(self._around(len(self.levels)), [statement], Split((), (statement,), ()))
        except NotSplit as refused:
            self.refusal = refused.obstacle
        return None

    def whole(self, depth: int, loop: ast.For) -> Step | Obstacle:
        """A loop of the block at some depth as a step, whose iterations leave nothing behind but variables."""
        around = self._around(depth + 1)
        flow = Flow(loop.body)
        left = {*flow.written, *names_in(loop.target)}
        wanted = sorted(left & around.live(loop.end_lineno or 0))
        if wanted:
            return Obstacle(loop.lineno, f"begins a loop whose {', '.join(wanted)} is used behind it")
        parts = Split((), (loop,), ())
        try:
            given, above = self._given(around, flow, loop.body, loop.lineno)
            obstacle = around.changes_elsewhere([loop], flow, given, self.others is not None)
            if obstacle is not None:
                return obstacle
            values = tensors(around, loop.body, given, self.unproven, self.changing)
            method = self._method(around, given, above)
            self._check_class(loop.body, method, above)
        except NotSplit as refused:
            return refused.obstacle
        passed = tuple(Argument(name, values.get(name, name)) for name in given)
        relaxed = not shape_reads.any_in(self.fit, loop.body, self.others or {})
        return Step((loop,), parts, passed, (), method, above, relaxed)

    def _method(self, around: Surroundings, given: Sequence[str], above: ast.stmt | None) -> ast.FunctionDef | None:
        method = around.method()
        holder = next((level.owner for level in reversed(self.levels) if isinstance(level.owner, ast.ClassDef)), None)
        if method is not None and holder is not None and has_no_hash(holder):
            what = f"begins a class, {holder.name}, whose objects cannot be hashed: no graph can be kept for one"
            raise NotSplit(Obstacle(holder.lineno, what))
        return None if method is None or arguments(method)[0] not in given or above is not None else method

    def _check_class(self, body: Sequence[ast.stmt], method: ast.FunctionDef | None, above: ast.stmt | None) -> None:
        """`super()` and `self.__net` mean something in a method of the class only."""
        if method is not None or not any(isinstance(level.owner, ast.ClassDef) for level in self.levels):
            return
        for node in every(body):
            if isinstance(node, ast.Name) and node.id in ("super", "__class__"):
                raise NotSplit(Obstacle(node.lineno, f"uses {node.id}, which is that of the class around it"))
            private = isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__")
            if private and above is None and isinstance(node, ast.Attribute):
                what = f"uses {ast.unparse(node)}, which has another name outside of its class"
                raise NotSplit(Obstacle(node.lineno, what))

    def regions(self) -> Iterator[list[ast.stmt]]:
        """Where a step may be: from each tape to the line, whether a graph can hold the statements or not."""
        for depth in self._depths():
            level = self.levels[depth]
            for index in self._tapes(level):
                yield level.block[index : level.index + 1]

    def _depths(self) -> Iterator[int]:
        """The levels to try: the body of the innermost loop or function with the tape, then blocks inside of it."""
        repeated = [n for n, level in enumerate(self.levels) if isinstance(level.owner, (*FUNCTIONS, *LOOPS))]
        if self.forward:
            yield from repeated[-1:]
            return
        base = next((n for n in reversed(repeated) if self._tapes(self.levels[n])), None)
        if base is None:
            return
        yield base
        for depth in range(base + 1, len(self.levels)):
            if is_tape(self.levels[depth].owner) or not self._tapes(self.levels[depth]):
                return
            yield depth

    def _tapes(self, level: Level) -> list[int]:
        blocks = range(level.index + 1)
        return [index for index in blocks if self.fit.has_tape(level.block[index], traced=self.traced)]

    def _extents(self, level: Level) -> tuple[int, list[int]]:
        """The first statement of a step, and those that it may end with: the last update that a graph can run, or an
        earlier one."""
        block, last = level.block, level.index
        starts = self._tapes(level)
        if self.forward:
            starts = [last] if isinstance(block[last], ast.Assign) else []
        first = self._first(block, starts, last)
        ends = [last]
        for index in range(last + 1, len(block)):
            try:
                self._split(block[first : index + 1])
            except NotSplit:
                break
            pure = self._is_pure(block[index], _NOTHING)
            again = not self.forward and self._computes_again(block[index], block[first : last + 1])
            if self._updates(block[index], block[first:index]) or again or (pure and self.forward):
                ends.append(index)
            elif not pure and (self.unproven or self._ends_before(block[index])):
                break
        # A tape ends nothing. Where no trial will tell, there is one way only.
        early = [end for end in ends[:-1] if end == last or not self.fit.has_tape(block[end])]
        return first, ends[-1:] if self.unproven else [ends[-1], *reversed(early)]

    def _ends_before(self, statement: ast.stmt) -> bool:
        """Whether a statement that a graph can hold is something else than the step."""
        return not names_only(statement) and self.fit.obstacle([statement]) is None

    def _region(self, level: Level, first: int, ends: int) -> tuple[list[ast.stmt], Split]:
        """The statements of a step, with operations right above it."""
        block = level.block
        while first > 0 and self._begins(block[first - 1], block[first : ends + 1]):
            first -= 1
        body = block[first : ends + 1]
        before = block[first - 1] if first else None
        after = block[ends + 1] if ends + 1 < len(block) else None
        shared = (before is not None and before.end_lineno == body[0].lineno) or (
            getattr(level.owner, "lineno", 0) == body[0].lineno
        )
        if shared or (after is not None and after.lineno == body[-1].end_lineno):
            raise NotSplit(Obstacle(body[0].lineno, "shares its line with another statement"))
        return body, self._split(body)

    def _first(self, block: list[ast.stmt], starts: Sequence[int], last: int) -> int:
        refused = NotSplit(Obstacle(block[last].lineno, "is in no statement with the tape"))
        for index in starts:
            for first in dict.fromkeys((index, with_lists(block, index, last))):
                try:
                    self._split(block[first : last + 1])
                    return first
                except NotSplit as error:
                    refused = error
        raise refused

    def _split(self, body: Sequence[ast.stmt]) -> Split:
        if self.forward or self.unproven:
            obstacle = self.fit.obstacle(body)
            if obstacle is not None:
                raise NotSplit(obstacle)
            return Split((), tuple(body), ())
        return split(self.fit, body)

    def _updates(self, statement: ast.stmt, before: Sequence[ast.stmt]) -> bool:
        """Whether a statement belongs to the step: another update, a metric, or `del` of a name of the step."""
        if isinstance(statement, ast.Delete):
            return set(names_in(statement)) <= bound_in(before)
        if isinstance(statement, (ast.With, ast.For)) and self.fit.has_tape(statement):
            return True
        if isinstance(statement, ast.For):
            return all(self._updates(inner, before) for inner in statement.body)
        if isinstance(statement, ast.If):  # `if self.learns_alpha:` with another gradient of the same tape
            tapes = {
                name for node in every(before) if isinstance(node, ast.With) and is_tape(node) for name in opened(node)
            }
            return bool(tapes & set(names_in(statement))) and self.fit.obstacle([statement]) is None
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        called = statement.value.func
        if isinstance(called, ast.Attribute) and called.attr in UPDATES:
            return True
        return self.fit.is_metric(ast.unparse(called))

    def _begins(self, statement: ast.stmt, body: Sequence[ast.stmt]) -> bool:
        """Whether the statement above a step belongs to it: an operation, a name for the model's variables, or the zero
        from which it adds up."""
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = {called_name(target) for target in statement.targets}
            return type(statement.value.value) in (int, float) and names <= bound_in(body) & set(Flow(body).read)
        variables = python_values.variables([statement])
        if variables and (names_only(statement) or variables == bound_in([statement])):
            return bound_in([statement]) <= set(Flow(body).read) and not self.fit.obstacle([statement])
        return self._is_pure(statement, _OUTSIDE_OPS) and not self.fit.obstacle([statement])

    def _is_pure(self, statement: ast.stmt, outside: re.Pattern[str]) -> bool:
        """Whether it assigns what TensorFlow computes from tensors."""
        if not isinstance(statement, ast.Assign) or not all(is_plain(target) for target in statement.targets):
            return False
        calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        dotted = [self.fit.dotted(call.func) for call in calls]
        return bool(calls) and all(
            (name.startswith("tensorflow.") and not outside.match(name)) or called_name(call.func) == "gradient"
            for name, call in zip(dotted, calls, strict=True)
        )

    def _computes_again(self, statement: ast.stmt, step: Sequence[ast.stmt]) -> bool:
        """Whether it assigns what the step computes, by the same model or loss: the loss after the update, say."""
        if not isinstance(statement, ast.Assign) or not all(is_plain(target) for target in statement.targets):
            return False
        flow = Flow(step)
        if not set(Flow([statement]).read) <= {*flow.read, *flow.written, *self.fit.modules, *self.fit.definitions}:
            return False  # it would hold arrays that the step does not
        if self.fit.obstacle([statement]) is not None:
            return False
        under = reached(step, self.fit.meant)
        tapes = [node for node in under if isinstance(node, ast.With) and is_tape(node)]
        known = {ast.unparse(node.func) for node in every(tapes) if isinstance(node, ast.Call)}
        calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        own = [call for call in calls if not self.fit.dotted(call.func)]
        ops = (self.fit.dotted(call.func) for call in calls if call not in own)
        same = bool(own) and all(ast.unparse(call.func) in known for call in own)
        return same and all(name.startswith("tensorflow.") and not _OUTSIDE_OPS.match(name) for name in ops)

    def _step(self, around: Surroundings, body: list[ast.stmt], parts: Split) -> Step:
        live = around.live(body[-1].end_lineno or 0)
        parts = self._without_python_results(around, body, parts, live)
        rest = without_moved(body, parts)
        flow = Flow(rest)
        wanted = live | set(Flow(parts.after).read)
        back = [name for name in flow.written if name in wanted]
        unset = self._check_results(around, rest, flow, back)
        given, above = self._given(around, flow, rest, body[0].lineno)
        variables = next(filter(around.is_variables, given), None)
        if variables is not None:
            what = f"begins a step that is given {variables}: a graph would take the values of these variables"
            raise NotSplit(Obstacle(body[0].lineno, what))
        anew = around.made_anew(given)
        if anew is not None:
            raise NotSplit(Obstacle(body[0].lineno, f"begins a step that calls {anew}, which is made anew each time"))
        obstacle = around.changes_elsewhere(rest, flow, given, self.others is not None)
        obstacle = obstacle or tensor_loops.obstacle(around, rest, given)
        if obstacle is not None:
            raise NotSplit(obstacle)
        values = tensors(around, rest, given, self.unproven, self.changing)
        method = self._method(around, given, above)
        self._check_class(rest, method, above)
        return Step(
            tuple(body),
            parts,
            tuple(Argument(name, values.get(name, name)) for name in given),
            tuple(back),
            method,
            above,
            relaxed=not shape_reads.any_in(self.fit, rest, self.others or {}),
            unset=unset,
        )

    def _without_python_results(
        self, around: Surroundings, body: list[ast.stmt], parts: Split, live: set[str]
    ) -> Split:
        """The same with what binds a size or a text that is used behind the step moved out of it, as a graph would give
        back a tensor."""
        rest, modules = without_moved(body, parts), self.fit.modules
        before = python_values.names(around.scopes[0].body, modules)
        behind = live | set(Flow(parts.after).read)
        mixed = sorted(behind & python_values.mixed(rest, modules, before))
        if mixed:
            raise NotSplit(Obstacle(body[0].lineno, f"begins a step that fills {mixed[0]}, which is used behind it"))
        wanted = behind & python_values.names(rest, modules, before)
        if not wanted:
            return parts
        inside = [node for node in every(rest) if isinstance(node, ast.stmt) and not isinstance(node, ast.With)]
        binding = [node for node in inside if bound_in([node]) & wanted]
        whole = self.forward or self.unproven
        moved = parts if whole else split(self.fit, body, frozenset(map(id, binding)))
        left = python_values.names(without_moved(body, moved), modules, before) & wanted
        if left:
            name = min(left)
            line = min((node.lineno for node in binding if name in bound_in([node])), default=body[0].lineno)
            raise NotSplit(Obstacle(line, f"sets {name}, a value of Python that is used behind the step"))
        return moved

    def _given(
        self, around: Surroundings, flow: Flow, statements: Sequence[ast.stmt], line: int
    ) -> tuple[list[str], ast.stmt | None]:
        """The arguments, and the statement above which it is defined if it has to be inside of the function around."""
        above = around.beside_objects(flow, statements)
        if isinstance(above, Obstacle):
            raise NotSplit(above)
        if above is not None:
            return around.given_inside(flow, above), above
        given = around.given(flow)
        found = [] if isinstance(given, Obstacle) else given
        if found and len(found) <= MOST and not any(map(around.is_options, found)):
            return found, None
        above = around.nested()
        if above is not None and (isinstance(given, Obstacle) or found):
            return around.given_inside(flow, above), above
        if isinstance(given, Obstacle):
            raise NotSplit(given)
        if len(found) > MOST:
            raise NotSplit(Obstacle(line, f"begins a step that needs {len(found)} values from around it"))
        return found, None

    def _check_results(
        self, around: Surroundings, rest: Sequence[ast.stmt], flow: Flow, back: Sequence[str]
    ) -> tuple[str, ...]:
        """Names that are set on some paths only, and have no value before: they are None otherwise."""
        line = rest[0].lineno
        asked = (name for name in flow.written if name in back or name in flow.read)
        unset = tuple(name for name in asked if name not in flow.certain and around.has_no_value(name, rest))
        for name in unset:
            flow.read.pop(name, None)
        variables = python_values.variables(rest) & set(back)
        if variables:
            name = min(variables)
            raise NotSplit(Obstacle(line, f"begins a step that sets {name}, variables that are used behind the step"))
        unsure = set(back) - flow.certain - set(unset)
        if unsure:
            raise NotSplit(Obstacle(line, f"begins a step that sets {', '.join(sorted(unsure))} on some paths only"))
        tapes = {name for node in every(rest) if isinstance(node, ast.With) for name in opened(node)}
        if tapes & set(back):
            raise NotSplit(
                Obstacle(line, f"opens {', '.join(sorted(tapes & set(back)))}, which is used after the step")
            )
        declared = set(flow.written) & around.declared()
        if declared:
            raise NotSplit(Obstacle(line, f"begins a step that sets the global {', '.join(sorted(declared))}"))
        return unset
