"""Separates the statements of a step that a graph can hold from those that must stay Python.

`print(loss.numpy())` between the tape and the update is moved behind the traced call, a learning rate that is set or a
batch that is drawn there is moved before it. A statement is moved only over statements that have nothing to do with
it: neither a name nor an object that one of them changes is used by the other, and effects keep their order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatout.model.errors import Internal
from flatout.source import side_effects
from flatout.source.editing.dataflow import LOOPS, Flow, called_name, reached
from flatout.source.editing.graph_fit import UPDATES, GraphFit, Obstacle, every, is_tape, opened

_QUIET_BUILTINS = {"float", "int", "bool", "str", "len", "min", "max", "sum", "abs", "round", "list", "tuple", "range"}
_QUIET_PACKAGES = ("numpy.", "time.", "tensorflow.", "keras.", "math.")
_FILLS = {
    *("append", "appendleft", "extend", "insert", "pop", "popleft", "clear", "update", "add", "remove", "discard"),
    *("setdefault", "sort", "reverse", "fill", "put", "push", "store", "remember"),
}
_VARIABLES = {"trainable_variables", "trainable_weights", "variables", "weights"}
_SETTINGS = {"learning_rate", "lr", "name"}
"""Attributes that an update of the weights does not change."""


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

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.text)
        self.obstacle = obstacle


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


def split(fit: GraphFit, region: Sequence[ast.stmt]) -> Split:
    """Raises `NotSplit` where a statement can be moved neither up nor down."""
    items = list(_items(fit, region, frozenset()))
    graph = [item for item in items if item.obstacle is None]
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
        if down is not None and item.recorded and not _leaves(item.statement):
            down = "it computes under the tape what the step needs"
        if down is not None:
            raise NotSplit(Obstacle(item.obstacle.line, f"{item.obstacle.what}; {down}"))
        after.append(item)
    return Split(
        tuple(item.statement for item in before),
        tuple(item.statement for item in graph),
        tuple(item.statement for item in after),
    )


def _items(fit: GraphFit, region: Sequence[ast.stmt], made: frozenset[str], under: bool = False) -> Iterator[_Item]:
    """`made`: names that statements of the graph have written so far; `under`: whether a tape is open."""
    for statement in region:
        obstacle = fit.obstacle([statement], fresh=made & side_effects.made_here(region))
        if obstacle is None and _counts(statement, made):
            obstacle = Obstacle(statement.lineno, "counts in Python")
        if obstacle is not None and is_tape(statement) and isinstance(statement, ast.With):
            flow = Flow([ast.With(items=statement.items, body=[ast.Pass()])])
            yield _Item(
                statement, None, frozenset(flow.read), frozenset(opened(statement)), frozenset(), frozenset(), False
            )
            inner = list(_items(fit, statement.body, made | set(opened(statement)), under=True))
            made |= {name for item in inner if item.obstacle is None for name in item.written}
            yield from inner
            continue
        if obstacle is not None and (fit.has_tape(statement) or _updates(statement)):
            raise NotSplit(obstacle)
        flow = Flow([statement])
        filled = set(grown(statement))
        uses, changes = _objects(fit, statement, obstacle is not None)
        if obstacle is None:
            made |= set(flow.written)
        yield _Item(
            statement,
            obstacle,
            frozenset(flow.read),
            frozenset({*flow.written, *(name for name in filled if "." not in name)}),
            uses,
            changes | filled,
            _has_effect(fit, statement),
            under and _computes(fit, statement),
        )


def _counts(statement: ast.stmt, made: frozenset[str]) -> bool:
    """`total += loss`: a name from outside that Python goes on with."""
    return (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id not in made
    )


def _updates(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node.func) in UPDATES for node in ast.walk(statement))


def _against_up(item: _Item, earlier: Sequence[_Item], after: Sequence[_Item]) -> str | None:
    """Why an item cannot run before the graph."""
    if item.recorded:
        return "the tape has to see it"
    for other in earlier:
        if item.read & other.written:
            return "it needs what the step computes"
        if item.written & (other.read | other.written) or item.uses & other.changes or item.changes & other.uses:
            return "the step needs it as it was before"
    for other in after:
        if item.effect and other.effect:
            return "it would overtake another statement"
        if item.read & other.written or item.written & (other.read | other.written):
            return "it would overtake another statement"
    started = any(not is_tape(other.statement) for other in earlier)
    return "it ends the step early" if started and _leaves(item.statement) else None


def _against_down(item: _Item, later: Sequence[_Item]) -> str | None:
    """Why an item cannot run behind the graph."""
    if later and _leaves(item.statement):
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
    return None


def grown(statement: ast.stmt) -> Iterator[str]:
    """What a statement fills or sets an element or an attribute of: `losses` of `losses.append(x)`, `self.seen`."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            yield ast.unparse(node.func.value)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield ast.unparse(node.value)


def _leaves(statement: ast.stmt) -> bool:
    """Whether it may end the iteration or the function."""
    inner = {id(node) for loop in ast.walk(statement) if isinstance(loop, LOOPS) for node in ast.walk(loop)}
    return any(
        isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and id(node) not in inner)
        for node in ast.walk(statement)
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _objects(fit: GraphFit, statement: ast.stmt, host: bool) -> tuple[frozenset[str], frozenset[str]]:
    """What a statement names, and what it changes: what it calls a method of, and whose variables it passes on."""
    nodes = list(reached([statement], fit.definitions)) if host else list(ast.walk(statement))
    uses: set[str] = set()
    skipped: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _SETTINGS and isinstance(node.ctx, ast.Load):
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in skipped:
            uses |= set(_chains(node, fit))
    changes: set[str] = set()
    if host or _updates(statement) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        for call in (node for node in every([statement]) if isinstance(node, ast.Call)):
            changes |= set(_chains(call.func, fit))
        for node in every([statement]):
            if isinstance(node, ast.Attribute) and node.attr in (
                "trainable_variables",
                "trainable_weights",
                "variables",
                "weights",
            ):
                changes |= set(_chains(node.value, fit))
    return frozenset(uses), frozenset(changes)


def _chains(node: ast.expr, fit: GraphFit) -> Iterator[str]:
    """`self.model.dense` → `self.model.dense`, `self.model`; nothing for what is imported."""
    parts = node
    while isinstance(parts, ast.Attribute):
        parts = parts.value
    if not isinstance(parts, ast.Name) or parts.id in fit.modules:
        return
    while isinstance(node, ast.Attribute):
        yield ast.unparse(node)
        node = node.value
    if isinstance(node, ast.Name) and node.id not in ("self", "cls"):
        yield node.id


def _computes(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether it may call a model or an op: all calls but those of Python, NumPy and of what makes data."""
    return any(isinstance(node, ast.Call) and not fit.makes_data(node) for node in ast.walk(statement))


def _has_effect(fit: GraphFit, statement: ast.stmt) -> bool:
    """Whether something but the names it assigns may show that it ran."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            return True
        if not isinstance(node, ast.Call):
            continue
        dotted = f"{fit.dotted(node.func)}."
        quiet = dotted.startswith(_QUIET_PACKAGES) and not dotted.startswith(("numpy.random.", "tensorflow.summary."))
        name = called_name(node.func)
        builtin = isinstance(node.func, ast.Name) and name in _QUIET_BUILTINS
        if not (quiet or builtin or name in ("numpy", "item", "tolist", "astype", "reshape", "mean", "format")):
            return True
    return False
