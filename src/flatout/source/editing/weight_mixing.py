"""Statements that copy the weights of one model to another, or mix them: what is copied, and by which share.

Recognised are `target.set_weights(source.get_weights())`; weights that are read into lists, mixed element by element
and set again; and loops over pairs of variables that assign a mixture. Anything else is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Parts = tuple[tuple[str, str], tuple[str, str]]
"""Two elements of a sum, each with what it is multiplied by."""

_UNNAMED = ""
"""The name of a list that is made where it is set."""
_READ = ".get_weights()"
_ATTRIBUTES = ("weights", "variables", "trainable_weights", "trainable_variables")


@dataclass(frozen=True)
class Mixing:
    """`target = share * source + (1 - share) * target`, for all of their weights."""

    target: str
    source: str
    share: str
    """Empty for a plain copy."""
    attribute: str = "weights"


@dataclass
class Group:
    """Consecutive statements of a block that do nothing but copy."""

    first: ast.stmt
    last: ast.stmt
    mixings: list[Mixing] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Variables that hold weights in between: nothing else may read them."""


def groups(module: ast.Module) -> list[Group]:
    """All of them in a file."""
    found = []
    for node in ast.walk(module):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                found += _in_block(block)
    own = [group for group in found if not _read_elsewhere(group, module)]
    return sorted(own, key=lambda group: group.first.lineno)


def _in_block(block: Sequence[ast.stmt]) -> list[Group]:
    found: list[Group] = []
    at = 0
    while at < len(block):
        taken = _take(block[at:])
        if taken is not None:
            group, length = taken
            found.append(group)
            at += length
        else:
            at += 1
    return found


def _take(block: Sequence[ast.stmt]) -> tuple[Group, int] | None:
    """The longest beginning of a block that is complete: every list that was read is mixed or set."""
    chain = _Chain()
    best: tuple[Group, int] | None = None
    for number, statement in enumerate(block):
        if not chain.follow(statement):
            break
        if chain.mixings and not chain.waiting:
            targets = [mixing.target for mixing in chain.mixings]
            sources = [mixing.source for mixing in chain.mixings]
            if len(set(targets)) == len(targets) and not set(targets) & set(sources):
                group = Group(block[0], statement, list(chain.mixings), {*chain.read, *chain.mixed})
                best = group, number + 1
    return best


class _Chain:
    """What the statements so far have read and mixed."""

    def __init__(self) -> None:
        self.read: dict[str, str] = {}
        """Lists of weights by their names, with the model that they were read from."""
        self.mixed: dict[str, Parts | None] = {}
        """Lists that hold a mixture; None for one that is still empty."""
        self.waiting: set[str] = set()
        """Names that were read or mixed, and not used yet."""
        self.mixings: list[Mixing] = []

    def follow(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return self._assign(statement.targets[0], statement.value)
        if isinstance(statement, ast.For) and not statement.orelse:
            return self._loop(statement)
        if isinstance(statement, ast.Expr):
            return self._set(statement.value)
        return False

    def _assign(self, target: ast.expr, value: ast.expr) -> bool:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, given in pairs:
            if not isinstance(name, ast.Name):
                return False
            model = _receiver(given, "get_weights")
            if model:
                self.read[name.id] = model
                self.waiting.add(name.id)
            elif isinstance(given, ast.List) and not given.elts:
                self.mixed[name.id] = None
            elif not self._comprehend(name.id, given):
                return False
        return True

    def _comprehend(self, name: str, given: ast.expr) -> bool:
        """`[tau * a + (1 - tau) * b for a, b in zip(…)]`."""
        if not isinstance(given, ast.ListComp) or len(given.generators) != 1 or given.generators[0].ifs:
            return False
        return self._mix(name, given.elt, _elements(given.generators[0].target, given.generators[0].iter))

    def _loop(self, loop: ast.For) -> bool:
        if len(loop.body) != 1:
            return False
        inner, elements = loop.body[0], _elements(loop.target, loop.iter)
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0], ast.Subscript):
            place = inner.targets[0]
            if not isinstance(place.value, ast.Name) or not isinstance(place.slice, ast.Name):
                return False
            return place.slice.id == elements.get("#") and self._mix(place.value.id, inner.value, elements)
        call = inner.value if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call) else None
        if call is None or len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr == "append" and isinstance(call.func.value, ast.Name):
            name = call.func.value.id
            return name in self.mixed and self._mix(name, call.args[0], elements)
        return call.func.attr == "assign" and self._assigned(call.func.value, call.args[0], loop)

    def _mix(self, name: str, value: ast.expr, elements: dict[str, str]) -> bool:
        """`name` becomes a list of mixtures of two lists that were read."""
        parts = _parts(value, lambda node: _element(node, elements))
        if parts is None:
            return False
        at_once = {part[0] for part in parts if part[0].endswith(_READ)}
        self.read.update({text: text.removesuffix(_READ) for text in at_once})
        self.waiting -= {parts[0][0], parts[1][0]}
        self.mixed[name] = parts
        self.waiting.add(name)
        return all(part[0] in self.read for part in parts)

    def _set(self, call: ast.expr) -> bool:
        target = _receiver(call, "set_weights", 1)
        if not target or not isinstance(call, ast.Call):
            return False
        given = call.args[0]
        source = _receiver(given, "get_weights")
        if source:
            self.mixings.append(Mixing(target, source, ""))
            return source != target
        if isinstance(given, ast.Name):
            name = given.id
        elif self._comprehend(_UNNAMED, given):
            name = _UNNAMED
        else:
            return False
        mixture = self.mixed.get(name)
        if mixture is not None:
            (first, share), (second, rest) = mixture
            models = self.read[first], self.read[second]
            if target not in models or models[0] == models[1]:
                return False
            # The share of the other model, whichever of the two stands first.
            other, own = (share, rest) if models[1] == target else (rest, share)
            mixed = _share(other, own)
            if mixed is None:
                return False
            self.mixings.append(Mixing(target, models[0] if models[1] == target else models[1], mixed))
        elif name in self.read and self.read[name] != target:
            self.mixings.append(Mixing(target, self.read[name], ""))
        else:
            return False
        self.waiting.discard(name)
        return True

    def _assigned(self, place: ast.expr, value: ast.expr, loop: ast.For) -> bool:
        """`for old, new in zip(target.weights, model.weights): old.assign(…)`."""
        pair = _zipped(loop.target, loop.iter)
        if pair is None or not isinstance(place, ast.Name) or place.id not in pair:
            return False
        lists = {name: node for name, node in pair.items() if isinstance(node, ast.Attribute)}
        attributes = {node.attr for node in lists.values()}
        if len(lists) != 2 or len(attributes) != 1 or not attributes <= set(_ATTRIBUTES):
            return False
        other = next(name for name in pair if name != place.id)
        target, source = (ast.unparse(lists[name].value) for name in (place.id, other))
        if not _is_plain(lists[place.id].value) or not _is_plain(lists[other].value) or target == source:
            return False
        if isinstance(value, ast.Name) and value.id == other:
            share: str | None = ""
        else:
            parts = _parts(value, lambda node: node.id if isinstance(node, ast.Name) and node.id in pair else None)
            if parts is None or {part[0] for part in parts} != set(pair):
                return False
            shares = dict(parts)
            share = _share(shares[other], shares[place.id])
        if share is None:
            return False
        self.mixings.append(Mixing(target, source, share, attributes.pop()))
        return True


# ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _receiver(node: ast.expr, method: str, arguments: int = 0) -> str:
    """`model` of `model.get_weights()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return ""
    plain = len(node.args) == arguments and not node.keywords and _is_plain(node.func.value)
    return ast.unparse(node.func.value) if plain else ""


def _is_plain(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _elements(target: ast.expr, source: ast.expr) -> dict[str, str]:
    """What the names of a loop stand for: the list that each is an element of, and under `#` the number."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
        if source.func.id == "range" and isinstance(target, ast.Name) and len(source.args) == 1:
            return {"#": target.id}
        if source.func.id == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            number, inner = target.elts
            found = _elements(inner, source.args[0]) if source.args else {}
            if isinstance(inner, ast.Name) and source.args and isinstance(source.args[0], ast.Name):
                found = {inner.id: source.args[0].id}
            return {**found, "#": number.id} if isinstance(number, ast.Name) else {}
    pair = _zipped(target, source)
    if pair is None:
        return {}
    named = {name: node.id for name, node in pair.items() if isinstance(node, ast.Name)}
    read = {name: ast.unparse(node) for name, node in pair.items() if _receiver(node, "get_weights")}
    return {**named, **read}


def _zipped(target: ast.expr, source: ast.expr) -> dict[str, ast.expr] | None:
    """The two names of a loop over `zip(a, b)`, or a list of that, with what each goes over."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id in ("list", "tuple"):
        source = source.args[0] if len(source.args) == 1 else source
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name) or source.func.id != "zip":
        return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or len(source.args) != 2:
        return None
    names = [item.id for item in target.elts if isinstance(item, ast.Name)]
    return dict(zip(names, source.args, strict=True)) if len(set(names)) == 2 else None


def _element(node: ast.expr, elements: dict[str, str]) -> str | None:
    """The list that an expression is an element of: `new` of `new[i]`, or of the `a` in `for a, b in zip(new, old)`."""
    if isinstance(node, ast.Name):
        return elements.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Name):
        return node.value.id if node.slice.id == elements.get("#") else None
    return None


def _parts(node: ast.expr, element_of: Callable[[ast.expr], str | None]) -> Parts | None:
    """Of `share * a + rest * b`: both elements, each with what it is multiplied by."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    found = []
    for side in (node.left, node.right):
        if not isinstance(side, ast.BinOp) or not isinstance(side.op, ast.Mult):
            return None
        for element, factor in ((side.left, side.right), (side.right, side.left)):
            name = element_of(element)
            if name is not None and _is_number(factor):
                found.append((name, ast.unparse(factor)))
                break
        else:
            return None
    return (found[0], found[1]) if found[0][0] != found[1][0] else None


def _is_number(node: ast.expr) -> bool:
    """Whether an expression may be a share: numbers, names and their differences."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Constant) or _is_plain(node)


def _share(other: str, own: str) -> str | None:
    """The share of the other model, where both shares add up to one."""
    if own in (f"1 - {other}", f"1.0 - {other}"):
        return other
    if other in (f"1 - {own}", f"1.0 - {own}"):
        return other
    try:
        return other if abs(float(other) + float(own) - 1) < 1e-9 else None
    except ValueError:
        return None


def _read_elsewhere(group: Group, module: ast.Module) -> bool:
    """Whether other statements of the same function use the lists of weights."""
    inside = range(group.first.lineno, (group.last.end_lineno or group.last.lineno) + 1)
    functions = [n for n in ast.walk(module) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [f for f in functions if f.lineno < inside[0] and inside[-1] <= (f.end_lineno or 0)]
    scope: ast.AST = min(around, key=lambda f: (f.end_lineno or 0) - f.lineno) if around else module
    return any(
        isinstance(node, ast.Name)
        and node.id in group.names
        and isinstance(node.ctx, ast.Load)
        and node.lineno not in inside
        for node in ast.walk(scope)
    )
