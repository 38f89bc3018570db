"""Expressions of a copy of weights: lists of weights, elements of them in a loop, and mixtures of two with a share."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from flatout.source.editing.dataflow import names_in

ATTRIBUTES = ("weights", "variables", "trainable_weights", "trainable_variables")
ALL = ("weights", "variables")
"""What `get_weights` reads and `set_weights` sets."""
_SAME = {"value", "read_value", "numpy"}
"""Methods of a variable that give back what it holds."""
_FUNCTIONS = re.compile(r"(tf|tensorflow|np|numpy)\.(?:math\.)?(multiply|add|subtract)")
_ARITHMETIC = (ast.Sub, ast.Add, ast.Mult, ast.Div)


@dataclass(frozen=True)
class Weights:
    """A list of weights."""

    owner: str
    """The model; where `attribute` is empty, the list itself."""
    attribute: str = ""
    read: bool = False
    """Whether it holds the arrays that `get_weights` returns."""

    @property
    def variables(self) -> str:
        """How the list of the variables is written."""
        return f"{self.owner}.{self.attribute}" if self.attribute else self.owner

    @property
    def is_whole(self) -> bool:
        return self.attribute in ALL


@dataclass(frozen=True)
class Mixture:
    """`first * share + second * (1 - share)`, whichever of the two shares is written as the difference."""

    first: Weights
    share: ast.expr
    second: Weights
    rest: ast.expr

    def share_of(self, weights: Weights) -> str:
        return ast.unparse(self.share if weights == self.first else self.rest)

    def other(self, weights: Weights) -> Weights | None:
        """What these weights are mixed with; None where they are no part of it."""
        if weights in (self.first, self.second):
            return self.second if weights == self.first else self.first
        return None


ElementOf = Callable[[ast.expr], Weights | None]
"""The list that an expression is an element of."""


@dataclass(frozen=True)
class Elements:
    """What the names of a loop stand for."""

    lists: dict[str, Weights] = field(default_factory=dict)
    number: str = ""
    """The name that counts."""
    known: Mapping[str, Weights] = field(default_factory=dict)
    """Lists by their names, from statements before the loop."""
    counted: Weights | None = None
    """The list whose length is counted."""

    @property
    def names(self) -> set[str]:
        return {*self.lists, self.number}

    def of(self, node: ast.expr) -> Weights | None:
        """The list that an expression is an element of: `new` of `new[i]`, or of the `a` in `for a, b in zip(…)`."""
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            inner = node.func
            return self.of(inner.value) if isinstance(inner, ast.Attribute) and inner.attr in _SAME else None
        if isinstance(node, ast.Attribute) and node.attr == "value":
            return self.of(node.value)
        if isinstance(node, ast.Name):
            return self.lists.get(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == self.number:
            return list_of(node.value, self.known)
        return None

    def go_over(self, *lists: Weights) -> bool:
        """Whether a loop that counts comes to every element of these lists."""
        counted = self.counted
        if not self.number or counted is None:
            return not self.number or bool(self.lists)
        return any(counted == one or (one.attribute and one.attribute == counted.attribute) for one in lists)


def elements(target: ast.expr, source: ast.expr, known: Mapping[str, Weights]) -> Elements | None:
    """Of a loop over one or two lists of weights, over their numbers, or both; None for any other loop."""
    called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
    if isinstance(source, ast.Call) and called == "range":
        counted = _counted(source, known)
        return Elements({}, target.id, known, counted) if counted and isinstance(target, ast.Name) else None
    if isinstance(source, ast.Call) and called == "enumerate" and len(source.args) == 1 and not source.keywords:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
            return None
        inner = elements(target.elts[1], source.args[0], known)
        return Elements(inner.lists, target.elts[0].id, known) if inner is not None and not inner.number else None
    if isinstance(source, ast.Call) and called in ("list", "tuple") and len(source.args) == 1:
        return elements(target, source.args[0], known)
    if isinstance(target, ast.Name):
        found = list_of(source, known)
        return Elements({target.id: found}, "", known) if found is not None else None
    return _zipped(target, source, known)


def _counted(called: ast.Call, known: Mapping[str, Weights]) -> Weights | None:
    """The list of `range(len(weights))`."""
    from_zero = len(called.args) == 1 or (len(called.args) == 2 and ast.unparse(called.args[0]) == "0")
    last = called.args[-1] if called.args and from_zero else None
    if not isinstance(last, ast.Call) or not isinstance(last.func, ast.Name) or last.func.id != "len":
        return None
    return list_of(last.args[0], known) if len(last.args) == 1 else None


def _zipped(target: ast.expr, source: ast.expr, known: Mapping[str, Weights]) -> Elements | None:
    """A loop over `zip(a, b)`."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name) or source.func.id != "zip":
        return None
    if any(item.arg != "strict" for item in source.keywords) or len(source.args) != 2:
        return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    names = [item.id for item in target.elts if isinstance(item, ast.Name)]
    lists = [found for item in source.args if (found := list_of(item, known)) is not None]
    if len(set(names)) != 2 or len(lists) != 2 or lists[0] == lists[1]:
        return None
    return Elements(dict(zip(names, lists, strict=True)), "", known)


def list_of(node: ast.expr, known: Mapping[str, Weights]) -> Weights | None:
    """`model.get_weights()`, `model.trainable_variables`, or a name, also as an array of arrays."""
    if isinstance(node, ast.Call):
        if is_array(node) or (isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")):
            return list_of(node.args[0], known) if len(node.args) == 1 else None
        owner = receiver(node, "get_weights")
        return Weights(owner, "weights", read=True) if owner else None
    if not is_plain(node):
        return None
    if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
        return Weights(ast.unparse(node.value), node.attr)
    return known.get(ast.unparse(node)) or Weights(ast.unparse(node))


def is_array(node: ast.expr) -> bool:
    """`np.array(weights, dtype=object)`: arithmetic goes element by element."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    module = node.func.value
    numpy = isinstance(module, ast.Name) and module.id in ("np", "numpy")
    return numpy and node.func.attr in ("array", "asarray") and {item.arg for item in node.keywords} <= {"dtype"}


def receiver(node: ast.expr, method: str, arguments: int = 0) -> str:
    """`model` of `model.get_weights()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return ""
    plain = len(node.args) == arguments and not node.keywords and is_plain(node.func.value)
    return ast.unparse(node.func.value) if plain else ""


def is_plain(node: ast.expr) -> bool:
    """A name, an attribute, or an element by its number or name: `self.agents[i].model`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Name, ast.Constant)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


# ── mixtures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def mixture(value: ast.expr, of: ElementOf, loops: set[str]) -> Mixture | None:
    """Of `share * a + (1 - share) * b`, or `b + share * (a - b)`. `loops`: names that no share may read."""
    value = _written_out(value)
    if not isinstance(value, ast.BinOp):
        return None
    if isinstance(value.op, ast.Add):
        first, second = _scaled(value.left, of, loops), _scaled(value.right, of, loops)
        if first is not None and second is not None and first[0] != second[0] and _is_whole(first[1], second[1]):
            return Mixture(*first, *second)
        return _towards(value.left, value.right, of, loops) or _towards(value.right, value.left, of, loops)
    return _towards(value.left, value.right, of, loops, back=True) if isinstance(value.op, ast.Sub) else None


Step = tuple[Weights, Weights, ast.expr]


def step(value: ast.expr, of: ElementOf, loops: set[str], back: bool = False) -> Step | None:
    """Of `share * (a - b)`: a, b and the share; of `share * (b - a)` where it is taken off."""
    for factor, share in _factors(value):
        part = _written_out(factor)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and _is_number(share, loops):
            ends = of(part.left), of(part.right)
            new, old = ends[::-1] if back else ends
            if new is not None and old is not None and new != old:
                return new, old, share
    return None


def _towards(old: ast.expr, moved: ast.expr, of: ElementOf, loops: set[str], back: bool = False) -> Mixture | None:
    start, found = of(old), step(moved, of, loops, back)
    if start is None or found is None or found[1] != start:
        return None
    new, _, share = found
    return Mixture(new, share, start, ast.BinOp(ast.Constant(1), ast.Sub(), share))


def _scaled(node: ast.expr, of: ElementOf, loops: set[str]) -> tuple[Weights, ast.expr] | None:
    """Of `share * a`: the list that a is an element of, and the share."""
    for element, share in _factors(node):
        found = of(element)
        if found is not None and _is_number(share, loops):
            return found, share
    return None


def _factors(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both ways to read a product."""
    node = _written_out(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node.left, node.right
        yield node.right, node.left


def _written_out(node: ast.expr) -> ast.expr:
    """`a * b` for `tf.multiply(a, b)`."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return node
    found = _FUNCTIONS.fullmatch(ast.unparse(node.func))
    operator = {"multiply": ast.Mult(), "add": ast.Add(), "subtract": ast.Sub()}[found.group(2)] if found else None
    return ast.BinOp(node.args[0], operator, node.args[1]) if operator is not None else node


def _is_number(node: ast.expr, loops: set[str]) -> bool:
    """Whether an expression may be a share: numbers, names and what is computed of them."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return _is_number(node.left, loops) and _is_number(node.right, loops)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return len(node.args) == 1 and not node.keywords and _is_number(node.args[0], loops)
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    return is_plain(node) and not loops & set(names_in(node))


def _is_whole(one: ast.expr, other: ast.expr) -> bool:
    """Whether two shares add up to one."""
    for share, rest in ((one, other), (other, one)):
        if isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Sub) and ast.dump(rest.right) == ast.dump(share):
            return isinstance(rest.left, ast.Constant) and rest.left.value == 1
    numbers = [node.value for node in (one, other) if isinstance(node, ast.Constant)]
    known = [float(number) for number in numbers if isinstance(number, (int, float))]
    return len(known) == 2 and abs(sum(known) - 1) < 1e-9
