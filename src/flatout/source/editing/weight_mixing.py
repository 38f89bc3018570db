"""Statements that copy the weights of one model to another, or mix them: what is copied, and by which share.

Recognised are `target.set_weights(source.get_weights())`; weights that are read into lists, mixed element by element
or as arrays, and set again; and loops over pairs of variables that assign a mixture. Anything else is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flatout.source.editing.dataflow import FUNCTIONS, arguments, bound_in, names_in
from flatout.source.editing.weight_expressions import (
    Elements,
    Mixture,
    Weights,
    elements,
    is_array,
    list_of,
    mixture,
    receiver,
    step,
)

_UNNAMED = ""
"""The name of a list that is made where it is set."""
_ASSIGNS = ("assign", "assign_add", "assign_sub")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Mixing:
    """`target = share * source + (1 - share) * target`, for all of their weights."""

    target: Weights
    source: Weights
    share: str
    """Empty for a plain copy."""


@dataclass
class Group:
    """Consecutive statements of a block that do nothing but copy."""

    first: ast.stmt
    last: ast.stmt
    mixings: list[Mixing] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Variables that hold weights in between: nothing else may read them."""

    @property
    def lines(self) -> range:
        return range(self.first.lineno, (self.last.end_lineno or self.last.lineno) + 1)


def groups(module: ast.Module) -> list[Group]:
    """All of them in a file."""
    found = [group for block in _blocks(module) for group in _in_block(block, module)]
    return sorted(found, key=lambda group: group.first.lineno)


def read_elsewhere(module: ast.Module, line: int) -> str:
    """A list of weights that keeps the copy on this line as it is, since other lines read it too; empty for none."""
    for block in _blocks(module):
        for at in range(len(block)):
            for group in _beginnings(block[at:]):
                if line in group.lines and (names := _names_read_elsewhere(group, module)):
                    return min(names)
    return ""


def _blocks(module: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(module):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _in_block(block: list[ast.stmt], module: ast.Module) -> Iterator[Group]:
    at = 0
    while at < len(block):
        taken = [group for group in _beginnings(block[at:]) if not _names_read_elsewhere(group, module)]
        if taken:
            yield taken[-1]
            at = block.index(taken[-1].last)
        at += 1


def _beginnings(block: Sequence[ast.stmt]) -> Iterator[Group]:
    """The beginnings of a block that are complete, each longer than the one before: every list that was read is mixed
    or set."""
    chain = _Chain()
    for statement in block:
        if not chain.follow(statement):
            return
        if chain.mixings and not chain.waiting:
            targets = [mixing.target.owner for mixing in chain.mixings]
            sources = [mixing.source.owner for mixing in chain.mixings]
            if len(set(targets)) == len(targets) and not set(targets) & set(sources):
                yield Group(block[0], statement, list(chain.mixings), {*chain.known, *chain.mixed} - {_UNNAMED})


class _Chain:
    """What the statements so far have read and mixed."""

    def __init__(self) -> None:
        self.known: dict[str, Weights] = {}
        """Lists of weights by their names."""
        self.arrays: set[str] = set()
        """Those that NumPy does arithmetic with."""
        self.mixed: dict[str, Mixture | None] = {}
        """Lists that hold a mixture; None for one that is still empty."""
        self.waiting: set[str] = set()
        """Names that were read or mixed, and not used yet."""
        self.mixings: list[Mixing] = []

    def follow(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return self._assign(statement.targets[0], statement.value)
        if isinstance(statement, ast.For) and not statement.orelse:
            return self._loop(statement)
        if isinstance(statement, ast.Assert):  # that two lists are as long as each other
            return set(names_in(statement)) <= {"len", *self.known}
        if isinstance(statement, ast.Expr):
            return self._listed(statement.value) or self._set(statement.value)
        return False

    def _assign(self, target: ast.expr, value: ast.expr) -> bool:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        return all(isinstance(name, ast.Name) and self._bind(name.id, given) for name, given in pairs)

    def _bind(self, name: str, given: ast.expr) -> bool:
        found = list_of(given, self.known)
        if found is not None and found.attribute:
            self.known[name] = found
            if found.read:
                self.waiting.add(name)
            if is_array(given):
                self.arrays.add(name)
            return True
        if isinstance(given, ast.List) and not given.elts:
            self.mixed[name] = None
            return True
        return self._computed(name, given)

    def _computed(self, name: str, given: ast.expr) -> bool:
        """`[tau * a + (1 - tau) * b for a, b in zip(…)]`, or the same with arrays of all weights."""
        if isinstance(given, ast.BinOp):
            return self._keep(name, mixture(given, self._array, self.arrays), given)
        if not isinstance(given, ast.ListComp) or len(given.generators) != 1 or given.generators[0].ifs:
            return False
        found = elements(given.generators[0].target, given.generators[0].iter, self.known)
        return found is not None and self._mix(name, given.elt, found, given)

    def _array(self, node: ast.expr) -> Weights | None:
        if is_array(node):
            found = list_of(node, self.known)
            return found if found is not None and found.attribute else None
        return self.known.get(node.id) if isinstance(node, ast.Name) and node.id in self.arrays else None

    def _loop(self, loop: ast.For) -> bool:
        found = elements(loop.target, loop.iter, self.known)
        inner = loop.body[-1]
        if found is None or len(loop.body) > 2:
            return False
        named = _named(loop.body[0]) if len(loop.body) == 2 else None
        if len(loop.body) == 2 and named is None:
            return False
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0], ast.Subscript):
            place = inner.targets[0]
            if not isinstance(place.value, ast.Name) or not isinstance(place.slice, ast.Name) or named is not None:
                return False
            return place.slice.id == found.number and self._mix(place.value.id, inner.value, found, loop)
        call = inner.value if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call) else None
        if call is None or len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
            return False
        given = call.args[0]
        if named is not None:
            if not isinstance(given, ast.Name) or given.id != named[0]:
                return False
            self.known.setdefault(named[0], Weights(named[0]))
            given = named[1]
        if call.func.attr == "append" and isinstance(call.func.value, ast.Name):
            name = call.func.value.id
            return name in self.mixed and self._mix(name, given, found, loop)
        return call.func.attr in _ASSIGNS and self._assigned(call.func, given, found, loop)

    def _listed(self, value: ast.expr) -> bool:
        """`[old.assign(…) for old, new in zip(…)]`."""
        call = value.elt if isinstance(value, ast.ListComp) and len(value.generators) == 1 else None
        if not isinstance(value, ast.ListComp) or not isinstance(call, ast.Call) or value.generators[0].ifs:
            return False
        found = elements(value.generators[0].target, value.generators[0].iter, self.known)
        called = call.func
        if found is None or not isinstance(called, ast.Attribute) or called.attr not in _ASSIGNS:
            return False
        return len(call.args) == 1 and not call.keywords and self._assigned(called, call.args[0], found, value)

    def _mix(self, name: str, value: ast.expr, found: Elements, whole: ast.AST) -> bool:
        """`name` becomes a list of mixtures of two lists that were read."""
        mixed = mixture(value, found.of, found.names)
        if mixed is None or not found.go_over(mixed.first, mixed.second):
            return False
        return self._keep(name, mixed, whole)

    def _keep(self, name: str, mixed: Mixture | None, whole: ast.AST) -> bool:
        if mixed is None or not (mixed.first.is_whole and mixed.second.is_whole):
            return False
        self.waiting -= set(names_in(whole))
        self.mixed[name] = mixed
        self.waiting.add(name)
        return True

    def _set(self, call: ast.expr) -> bool:
        owner = receiver(call, "set_weights", 1)
        if not owner or not isinstance(call, ast.Call):
            return False
        target, given = Weights(owner, "weights"), call.args[0]
        name = given.id if isinstance(given, ast.Name) else _UNNAMED
        source = list_of(given, self.known)
        if name not in self.mixed and source is not None and source.is_whole:
            self.mixings.append(Mixing(target, source, ""))
        elif name != _UNNAMED or self._computed(_UNNAMED, given):
            mixed = self.mixed.get(name)
            known = {one.owner: one for one in (mixed.first, mixed.second)} if mixed is not None else {}
            other = mixed.other(known[owner]) if mixed is not None and owner in known else None
            if mixed is None or other is None:
                return False
            self.mixings.append(Mixing(target, other, mixed.share_of(other)))
        else:
            return False
        self.waiting.discard(name)
        return self.mixings[-1].source.owner != owner

    def _assigned(self, called: ast.Attribute, value: ast.expr, found: Elements, whole: ast.AST) -> bool:
        """`for old, new in zip(target.weights, model.weights): old.assign(…)`."""
        target = found.of(called.value)
        if target is None or target.read or isinstance(called.value, ast.Call):
            return False
        share, source = "", found.of(value) if called.attr == "assign" else None
        mixed = mixture(value, found.of, found.names) if called.attr == "assign" and source is None else None
        if mixed is not None and (source := mixed.other(target)) is not None:
            share = mixed.share_of(source)
        elif called.attr != "assign":
            moved = step(value, found.of, found.names, back=called.attr == "assign_sub")
            if moved is not None and moved[1] == target:
                source, share = moved[0], ast.unparse(moved[2])
        if source is None or source == target or not found.go_over(target, source):
            return False
        if source.read and source.attribute != target.attribute:
            return False
        self.waiting -= set(names_in(whole))
        self.mixings.append(Mixing(target, source, share))
        return True


def _named(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """`mixed = …` in front of `old.assign(mixed)`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return (target.id, statement.value) if isinstance(target, ast.Name) and isinstance(statement, ast.Assign) else None


def _names_read_elsewhere(group: Group, module: ast.Module) -> set[str]:
    """Lists of weights that other statements of the same function use, and names of loops that they read afterwards."""
    inside = group.lines
    functions = [n for n in ast.walk(module) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [f for f in functions if f.lineno < inside[0] and inside[-1] <= (f.end_lineno or 0)]
    scope: ast.AST = min(around, key=lambda f: (f.end_lineno or 0) - f.lineno) if around else module
    loaded = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.lineno not in inside
    ]
    looped = _names_of_loops(scope, inside) - group.names
    own = {name: _where_bound_again(scope, name, inside) for name in looped}
    return {
        node.id for node in loaded if node.id in group.names or (node.id in looped and id(node) not in own[node.id])
    }


def _names_of_loops(scope: ast.AST, inside: range) -> set[str]:
    """What the loops of these lines leave behind."""
    loops = (node for node in ast.walk(scope) if isinstance(node, ast.For) and node.lineno in inside)
    return {name for loop in loops for name in names_in(loop.target)}


def _where_bound_again(scope: ast.AST, name: str, inside: range) -> set[int]:
    """The nodes, by identity, that read what another loop, a comprehension or a function of its own gives the name."""
    found: set[int] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.For):
            bound = name in names_in(node.target) and not node.lineno <= inside[0] <= (node.end_lineno or 0)
        elif isinstance(node, _COMPREHENSIONS):
            bound = any(name in names_in(part.target) for part in node.generators)
        elif isinstance(node, (*FUNCTIONS, ast.Lambda)) and node is not scope:
            bound = name in arguments(node) or (not isinstance(node, ast.Lambda) and name in bound_in(node.body))
        else:
            continue
        if bound:
            found |= {id(inner) for inner in ast.walk(node)}
    return found
