"""Whether what an ImageDataGenerator yields comes to a model: its iterator is trained or evaluated on, or handed on."""

from __future__ import annotations

import ast
import re

from flatout.source.analysis.scopes import FUNCTIONS, Module
from flatout.source.analysis.syntax import last_name

_FLOWS = ("flow", "flow_from_directory", "flow_from_dataframe")
_LOOKS = frozenset({"print", "len", "next", "type", "display", "list", "dir", "repr", "str", "isinstance"})
"""Functions that take an iterator, or one batch of it, to look at."""
_STEPS = re.compile(r"fit|train|GradientTape|predict|evaluate|step|model", re.IGNORECASE)
"""What a loop over batches calls that works with them."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)


def first_to_train_on(module: Module, made: list[ast.Call]) -> ast.Call | None:
    """The first generator of `made` whose images may come to a model; None where all are only looked at, read once into
    arrays, or written to files."""
    made = sorted(made, key=lambda call: (call.lineno, call.col_offset))
    parents = {child: node for node in ast.walk(module.tree) for child in ast.iter_child_nodes(node)}
    flows = [node for node in parents if isinstance(node, ast.Call) and _is_flow(node)]
    if not flows:
        return None if _is_left_alone(module.tree, parents) else made[0]
    reaching = [flow for flow in flows if _reaches(flow, parents, module.tree)]
    if not reaching:
        return None
    drawn = {_drawn_from(flow) for flow in reaching}
    return next((call for call in made if not drawn.isdisjoint(_names(call, parents))), made[0])


def _drawn_from(flow: ast.Call) -> object:
    """What an iterator is made of: a generator, or its name."""
    source = flow.func.value if isinstance(flow.func, ast.Attribute) else flow.func
    return source if isinstance(source, ast.Call) else last_name(source)


def _names(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> list[object]:
    holder = parents.get(call)
    targets = holder.targets if isinstance(holder, ast.Assign) else []
    return [call, *(name for item in targets if (name := last_name(item)))]


def _is_flow(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _FLOWS


def _is_left_alone(tree: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether nothing is done with the generators but to give them names, and to `fit` them to their images."""
    names = set()
    for node in parents:
        if isinstance(node, ast.Call) and last_name(node.func) == "ImageDataGenerator":
            holder = parents[node]
            if not isinstance(holder, ast.Assign) or not all(isinstance(item, ast.Name) for item in holder.targets):
                return False
            names |= {last_name(item) for item in holder.targets}
    return not any(
        not (isinstance(holder := parents[node], ast.Attribute) and holder.attr == "fit")
        for node in _loads(tree, names)
    )


def _loads(tree: ast.AST, names: set[str]) -> list[ast.Name]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
    ]


def _reaches(node: ast.AST, parents: dict[ast.AST, ast.AST], tree: ast.AST, hops: int = 3) -> bool:
    """Whether an iterator, given by an expression, may come to a model. In doubt it does."""
    holder = parents[node]
    while (
        isinstance(holder, ast.Call) and node in holder.args and last_name(holder.func) in ("enumerate", "zip", "tqdm")
    ):
        node, holder = holder, parents[holder]
    if isinstance(holder, ast.Expr):
        return False
    if isinstance(holder, ast.For) and holder.iter is node:
        return _works(holder)
    if isinstance(holder, (ast.Attribute, ast.Subscript)) and holder.value is node:
        drawn = isinstance(holder, ast.Subscript) or holder.attr in ("next", "__next__", "__getitem__")
        return drawn and any(isinstance(item, _LOOPS) and _works(item) for item in _around(holder, parents))
    if isinstance(holder, ast.Call) and node in holder.args and last_name(holder.func) in _LOOKS:
        return any(isinstance(item, _LOOPS) and _works(item) for item in _around(holder, parents))
    if isinstance(holder, ast.Assign) and holder.value is node and hops:
        if not all(isinstance(item, ast.Name) for item in holder.targets):
            return True
        names = {last_name(item) for item in holder.targets}
        return any(_reaches(use, parents, tree, hops - 1) for use in _loads(_home(holder, parents, tree), names))
    return True


def _home(node: ast.AST, parents: dict[ast.AST, ast.AST], tree: ast.AST) -> ast.AST:
    """The function around a node, or the file."""
    return next((item for item in _around(node, parents) if isinstance(item, FUNCTIONS)), tree)


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    found = []
    while (above := parents.get(node)) is not None:
        found.append(above)
        node = above
    return found


def _works(loop: ast.AST) -> bool:
    """Whether a loop does something with a model or hands the batches on, and not only plots, collects or saves."""
    return any(
        isinstance(item, (ast.Yield, ast.YieldFrom, ast.Return))
        or (isinstance(item, ast.Call) and _STEPS.search(last_name(item.func)) is not None)
        for item in ast.walk(loop)
    )
