"""Takes attributes that change from step to step out of a step: `self.beta` is read in a line above it.

A trace would freeze the attribute. Read above the call it is an argument, and has the value that the step would read
itself, as long as nothing in the step sets it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flatout.source.editing.above_step import computed_above
from flatout.source.editing.dataflow import FUNCTIONS, bound_in, names_in, reached
from flatout.source.editing.graph_fit import GraphFit, every
from flatout.source.editing.value_kinds import Kinds

_OF_PYTHON = {"training", "axis", "name", "dtype", "shape", "from_logits", "keepdims", "jit_compile", "persistent"}
"""Keywords for which TensorFlow wants a value of Python."""


class TakenOut(NamedTuple):
    text: str
    name: str
    """The variable that holds the attribute's value now."""


def taken_out(text: str, kinds: Kinds, body: Sequence[ast.stmt], attribute: str) -> TakenOut | None:
    """The text with all reads of an attribute in some statements of a step done above them; None where one of them
    has to stay, because Python decides something by it or because it is no data."""
    found = list(_chains(kinds.fit, body, attribute))
    if not found or any(chain.lineno != chain.end_lineno for chain in found):
        return None
    if len({ast.unparse(chain) for chain in found}) != 1 or names_in(found[0])[0] in bound_in(body):
        return None
    if _is_of_python(kinds, attribute) or _is_set_inside(kinds, body, attribute):
        return None
    parents = {id(child): node for node in every(body) for child in ast.iter_child_nodes(node)}
    if not all(_is_data(kinds, chain, parents) for chain in found):
        return None
    new, names = computed_above(text, body[0], found)
    return TakenOut(new, names[0])


def _chains(fit: GraphFit, body: Sequence[ast.stmt], attribute: str) -> Iterator[ast.Attribute]:
    """`self.beta`, `agent.schedule.beta`: each way to an attribute of this name, in the order of the source."""
    nodes = (node for node in every(body) if isinstance(node, ast.Attribute) and node.attr == attribute)
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        base: ast.expr = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name) and not fit.dotted(node):
            yield node


def _is_of_python(kinds: Kinds, attribute: str) -> bool:
    """Whether it holds an object, a list, a text or a flag rather than numbers: `self.model = load_model(path)`."""
    if kinds.is_scalar_attribute(attribute):
        return False
    values = [(value, fit) for fit in kinds.fits for value in fit.attributes.get(attribute, ())]
    return not values or any(_makes_object(value, fit) for value, fit in values)


def _makes_object(value: ast.expr, fit: GraphFit) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (str, bytes, bool))
    if isinstance(value, ast.Call):
        dotted = fit.dotted(value.func)
        name = ast.unparse(value.func).rpartition(".")[2]
        if dotted.startswith(("numpy.", "tensorflow.")) and not name[:1].isupper():
            return ".keras." in dotted or dotted == "tensorflow.function"
        return name[:1].isupper() or name.startswith(("load", "build", "make", "create", "get", "clone", "_build"))
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.IfExp)
    return not isinstance(value, plain)


def _is_set_inside(kinds: Kinds, body: Sequence[ast.stmt], attribute: str) -> bool:
    """Whether the step, or a function that it calls, sets the attribute."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load)
        for node in reached(body, lambda call: [one for fit in kinds.fits for one in fit.meant(call)])
    )


def _is_data(kinds: Kinds, chain: ast.Attribute, parents: dict[int, ast.AST]) -> bool:
    """Whether operations alone make use of it here: it is not called, no index, and Python decides nothing by it."""
    parent, child = parents.get(id(chain)), chain
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is chain):
        return False
    if isinstance(parent, ast.Subscript) and parent.value is chain and not kinds.attribute_is_array(chain.attr):
        return False
    above: ast.AST = chain
    while parent is not None:
        if isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)) and above is parent.test:
            return False
        if isinstance(parent, (ast.For, ast.comprehension)) and above is parent.iter:
            return False
        if isinstance(parent, ast.Subscript) and above is parent.slice:
            return False
        if isinstance(parent, (ast.BoolOp, ast.JoinedStr, *FUNCTIONS)):
            return False
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            return False
        if isinstance(parent, ast.keyword) and parent.arg in _OF_PYTHON:
            return False
        above, parent = parent, parents.get(id(parent))
    return isinstance(child.ctx, ast.Load)
