"""Separates the statements of a step that a graph can hold from those that must stay Python.

`print(loss.numpy())` between the tape and the update is moved behind the traced call, a learning rate that is set or a
batch that is drawn there is moved before it. A statement is moved only over statements that have nothing to do with
it: neither a name nor an object that one of them changes is used by the other, and effects keep their order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatout.model.errors import Internal
from flatout.source import side_effects
from flatout.source.editing.dataflow import LOOPS, Flow, called_name
from flatout.source.editing.graph_fit import GraphFit, Obstacle, is_tape, opened
from flatout.source.editing.statement_effects import (
    computes,
    handed_on,
    has_effect,
    makes_text,
    may_be_python,
    objects,
    updates,
)

_FILLS = {
    *("append", "appendleft", "extend", "insert", "pop", "popleft", "clear", "update", "add", "remove", "discard"),
    *("setdefault", "sort", "reverse", "fill", "put", "push", "store", "remember"),
}
_CLOCK = re.compile(r"\btime\.(time|perf_counter|monotonic)\(|\b(perf_counter|default_timer|datetime\.now)\(")


@dataclass(frozen=True)
class Split:
    before: tuple[ast.stmt, ...]
    """Moved above the call, in their order."""
    kept: tuple[ast.stmt, ...]
    """The statements of the graph, those of a tape that was divided one by one."""
    after: tuple[ast.stmt, ...]
    """Moved below the call, in their order."""


class NotSplit(Internal):
    """The statements cannot be separated; the obstacle says where."""

    def __init__(self, obstacle: Obstacle, needed_by: ast.stmt | None = None) -> None:
        """`needed_by`: the statement of the graph that goes on with what Python computes, or is in its way."""
        super().__init__(obstacle.text)
        self.obstacle = obstacle
        self.needed_by = needed_by


@dataclass(frozen=True)
class _Item:
    """One statement, or the head of a tape whose block is divided."""

    statement: ast.stmt
    obstacle: Obstacle | None
    """Why it must stay Python; None for one of the graph."""
    read: frozenset[str]
    written: frozenset[str]
    uses: frozenset[str]
    """Objects that it names: `model`, `self.optimizer`."""
    changes: frozenset[str]
    """Objects whose state it changes, lists that it fills among them."""
    effect: bool
    recorded: bool = False
    """It stands under a tape and may compute what the tape has to see."""
    hands_on: frozenset[str] = frozenset()
    """Objects that it gives to a function, which may change them."""
    leaves: bool = False
    """It may end the iteration or the function."""


def split(fit: GraphFit, region: Sequence[ast.stmt], python: frozenset[int] = frozenset()) -> Split:
    """Raises `NotSplit` where a statement can be moved neither up nor down.

    `python`: statements, by identity, that must stay Python though a graph could hold them.
    """
    first: NotSplit | None = None
    while True:
        try:
            return _divided(list(_items(fit, region, frozenset(), python=python)))
        except NotSplit as refused:
            # A mean of losses that were pulled is no part of the graph either, though a graph could compute it.
            first, other = first or refused, refused.needed_by
            if other is None or id(other) in python or not may_be_python(fit, other):
                raise first from None
            python |= {id(other)}


def _divided(items: Sequence[_Item]) -> Split:
    graph = [item for item in items if item.obstacle is None]
    if not graph:
        raise NotSplit(next(item.obstacle for item in items if item.obstacle is not None))
    before: list[_Item] = []
    after: list[_Item] = []
    for number, item in enumerate(items):
        if item.obstacle is None:
            continue
        earlier = [other for other in items[:number] if other.obstacle is None]
        later = [other for other in items[number + 1 :] if other.obstacle is None]
        up = _against_up(item, earlier, after)
        if up is None:
            before.append(item)
            continue
        down = _against_down(item, later)
        if down is not None and item.recorded and not item.leaves:
            down = "it computes under the tape what the step needs"
        if down is not None:
            blocking = (other.statement for other in later if _against_down(item, [other]) is not None)
            raise NotSplit(Obstacle(item.obstacle.line, f"{item.obstacle.what}; {down}"), next(blocking, None))
        after.append(item)
    return Split(
        tuple(item.statement for item in before),
        tuple(item.statement for item in graph),
        tuple(item.statement for item in after),
    )


def _items(
    fit: GraphFit,
    region: Sequence[ast.stmt],
    made: frozenset[str],
    under: bool = False,
    python: frozenset[int] = frozenset(),
) -> Iterator[_Item]:
    """`made`: names that statements of the graph have written so far; `under`: whether a tape is open; `python`:
    statements that go on with what Python computes."""
    for statement in region:
        obstacle = fit.obstacle([statement], fresh=made & side_effects.made_here(region))
        if obstacle is None and id(statement) in python:
            obstacle = Obstacle(statement.lineno, "goes on with what Python computes")
        if obstacle is None and makes_text(statement, made):
            obstacle = Obstacle(statement.lineno, "makes text of what the step computes")
        if obstacle is None and _counts(statement, made):
            obstacle = Obstacle(statement.lineno, "counts in Python")
        divided = obstacle is not None or any(id(inner) in python for inner in ast.walk(statement))
        if divided and is_tape(statement) and isinstance(statement, ast.With):
            flow = Flow([ast.With(items=statement.items, body=[ast.Pass()])])
            yield _Item(
                statement, None, frozenset(flow.read), frozenset(opened(statement)), frozenset(), frozenset(), False
            )
            inner = list(_items(fit, statement.body, made | set(opened(statement)), True, python))
            made |= {name for item in inner if item.obstacle is None for name in item.written}
            yield from inner
            continue
        if obstacle is not None and (fit.has_tape(statement) or updates(statement)):
            raise NotSplit(obstacle)
        flow = Flow([statement])
        filled = set(grown(statement))
        uses, changes = objects(fit, statement, obstacle is not None)
        if obstacle is None:
            made |= set(flow.written)
        yield _Item(
            statement,
            obstacle,
            frozenset(flow.read),
            frozenset({*flow.written, *(name for name in filled if "." not in name)}),
            uses,
            changes | filled,
            has_effect(fit, statement),
            under and not isinstance(statement, ast.Assert) and computes(fit, statement),
            handed_on(fit, statement) - made if obstacle is not None else frozenset(),
            _leaves(fit, statement),
        )


def _counts(statement: ast.stmt, made: frozenset[str]) -> bool:
    """`total += loss`: a name from outside that Python goes on with."""
    return (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id not in made
    )


def _against_up(item: _Item, earlier: Sequence[_Item], after: Sequence[_Item]) -> str | None:
    """Why an item cannot run before the graph."""
    if item.recorded:
        return "the tape has to see it"
    for other in earlier:
        if item.read & other.written:
            return "it needs what the step computes"
        if item.written & (other.read | other.written) or item.uses & other.changes or item.changes & other.uses:
            return "the step needs it as it was before"
        if item.hands_on & other.uses:
            return "the step needs what it may change as it was before"
    for other in after:
        if item.effect and other.effect:
            return "it would overtake another statement"
        if item.read & other.written or item.written & (other.read | other.written):
            return "it would overtake another statement"
        if item.uses & other.changes or item.changes & other.uses:
            return "it would overtake another statement"
    started = any(not is_tape(other.statement) for other in earlier)
    computed = started or any(other.uses for other in earlier)  # the head of a tape that was divided uses nothing
    if computed and _CLOCK.search(ast.unparse(item.statement)):
        return "it reads the clock within the step"
    return "it ends the step early" if started and item.leaves else None


def _against_down(item: _Item, later: Sequence[_Item]) -> str | None:
    """Why an item cannot run behind the graph."""
    if later and item.leaves:
        return "whether the weights are updated depends on it"
    for other in later:
        needed = item.written & other.read
        if needed:
            return f"line {other.statement.lineno} needs {_listed(needed)} from it"
        again = (item.read | item.written) & other.written
        if again:
            return f"line {other.statement.lineno} sets {_listed(again)} again"
        changed = item.uses & other.changes
        if changed:
            return f"line {other.statement.lineno} changes {_listed(changed)}, which it uses"
        filled = item.changes & other.uses & set(grown(item.statement))
        if filled:
            return f"line {other.statement.lineno} needs {_listed(frozenset(filled))} from it"
        if item.hands_on & other.uses:
            return f"line {other.statement.lineno} uses {_listed(item.hands_on & other.uses)}, which it may change"
    return None


def grown(statement: ast.stmt) -> Iterator[str]:
    """What a statement fills or sets an element or an attribute of: `losses` of `losses.append(x)`, `self.seen`."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            yield ast.unparse(node.func.value)
        elif isinstance(node, ast.Call) and called_name(node.func) == "set_value" and node.args:
            yield ast.unparse(getattr(node.args[0], "value", node.args[0]))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            yield ast.unparse(node if own else node.value)  # `self.count` has nothing to do with `self.model`
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield ast.unparse(node.value)


def _leaves(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether it may end the iteration or the function. An exception that nothing catches ends the program, with or
    without an update before it."""
    ends = (ast.Return, ast.Raise, ast.Assert) if fit.catches else (ast.Return,)
    inner = {id(node) for loop in ast.walk(statement) if isinstance(loop, LOOPS) for node in ast.walk(loop)}
    return any(
        isinstance(node, ends) or (isinstance(node, (ast.Break, ast.Continue)) and id(node) not in inner)
        for node in ast.walk(statement)
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
