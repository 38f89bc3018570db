"""Takes what Python and NumPy compute out of a step: `model(np.expand_dims(state, 0))` gets its array from a line above
it, `model(x[begin : begin + size])` or `model(x[rows])` its rows, and `gamma * (1 - int(done))` its number."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from flatout.source import side_effects
from flatout.source.editing.above_step import computed_above
from flatout.source.editing.dataflow import bound_in, names_in
from flatout.source.editing.graph_fit import GraphFit, every
from flatout.source.editing.step_search import Search, Step

_LATER = (ast.Lambda, ast.FunctionDef, ast.ListComp, ast.GeneratorExp, ast.JoinedStr)
"""What is in them is not computed where it is written, or with names of its own."""

_CASTS = {"int", "float", "bool"}
"""What Python makes of an array with one element, or of a number. Not of what the step computes."""
_MAY_NOT = (ast.If, ast.IfExp, ast.For, ast.While, ast.BoolOp, ast.Try)
"""What is in them may not run, or run several times."""
_OF_ARRAYS = {"astype", "reshape", "shape", "ndim", "dtype", "T", "copy", "flatten", "ravel", "mean", "sum"}


def taken_out(text: str, line: int) -> str | None:
    """The text with the arrays of the step around a line computed above it; None where there are none.

    Only arrays that are made of what was there before the step: they have the same values a few lines earlier.
    """
    module = ast.parse(text)
    search = Search(module, line)
    for region in search.regions():
        arrays = sorted(_arrays(search.fit, region), key=lambda array: (array.lineno, array.col_offset))
        if arrays and all(array.lineno == array.end_lineno for array in arrays):
            draws = [array for array in arrays if _draws(search.fit, array)]
            if all(_runs_once(region, draw) for draw in draws) and not _overtakes(search.fit, region, draws):
                return computed_above(text, region[0], arrays, draws)[0]
    return None


def rows_taken_out(text: str, fit: GraphFit, step: Step) -> str | None:
    """The text with the rows that a step picks (`x[rows]`) picked above it; None where it picks none.

    A graph cannot hold them: in there the index is a tensor, by which neither an array nor a tensor gives rows.
    """
    arrays = sorted(_picked(fit, step.body), key=lambda array: (array.lineno, array.col_offset))
    if not arrays or any(array.lineno != array.end_lineno for array in arrays):
        return None
    return computed_above(text, step.body[0], arrays)[0]


def _picked(fit: GraphFit, body: Sequence[ast.stmt]) -> Iterator[ast.Subscript]:
    written = bound_in(body)
    nodes = list(every(body))
    parts = [node for node in nodes if isinstance(node, ast.expr)]
    stored = {side_effects.root(part) for part in parts if _is_store(part)}
    objects = {side_effects.root(part) for part in parts if _is_of_object(part)}
    hidden = {id(inner) for node in nodes if isinstance(node, _LATER) for inner in ast.walk(node)}
    for node in nodes:
        if not isinstance(node, ast.Subscript) or id(node) in hidden or not _is_pick(node):
            continue
        names = set(names_in(node))
        if not names & (written | stored | set(fit.modules)) and side_effects.root(node) not in objects:
            yield node


def _is_store(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _is_of_object(node: ast.expr) -> bool:
    """`models[i](x)`, `models[i].trainable_variables`: what is picked is no array."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
        return node.attr not in _OF_ARRAYS
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


def _is_pick(node: ast.Subscript) -> bool:
    """`x[rows]`, `self.states[rows]`: what a name picks out of an array."""
    part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(node.ctx, ast.Load) or not isinstance(part, ast.Name):
        return False
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name)


def _arrays(fit: GraphFit, region: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    written = bound_in(region)
    waiting: list[ast.AST] = list(region)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call) and _is_array(fit, node):
            own = {name for name in names_in(node) if name not in _CASTS}
            used = own - set(fit.modules) or _draws(fit, node)
            if (
                used
                and not own & written
                and not _is_set(node, region)
                and all(fit.makes_data(c) for c in ast.walk(node) if isinstance(c, ast.Call))
            ):
                yield node
                continue
        if isinstance(node, ast.Subscript) and _is_rows(node) and not set(names_in(node)) & written:
            yield node
            continue
        if not isinstance(node, _LATER):
            waiting += list(ast.iter_child_nodes(node))


def _is_set(node: ast.expr, region: Sequence[ast.stmt]) -> bool:
    """Whether the step sets an attribute that an expression reads."""
    read = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return any(isinstance(part, ast.Attribute) and part.attr in read and _is_store(part) for part in every(region))


def _is_array(fit: GraphFit, call: ast.Call) -> bool:
    """`np.array(x)`, `np.array(x).astype("float32")`, `int(done)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("astype", "reshape", "copy"):
        return isinstance(call.func.value, ast.Call) and _is_array(fit, call.func.value)
    if isinstance(call.func, ast.Name) and call.func.id in _CASTS:
        return len(call.args) == 1 and not call.keywords and call.func.id not in fit.modules
    return fit.dotted(call.func).startswith("numpy.")


def _draws(fit: GraphFit, array: ast.expr) -> bool:
    """Whether NumPy gives something new each time."""
    calls = (node for node in ast.walk(array) if isinstance(node, ast.Call))
    return any(fit.dotted(call.func).startswith("numpy.random.") for call in calls)


def _overtakes(fit: GraphFit, region: Sequence[ast.stmt], draws: Sequence[ast.expr]) -> bool:
    """Whether something else in front of a draw may draw as well: above the step, it would come later."""
    last = max((draw.lineno for draw in draws), default=0)
    inside = {id(node) for draw in draws for node in ast.walk(draw)}
    for call in (node for node in every(region) if isinstance(node, ast.Call) and id(node) not in inside):
        own = any(fit.obstacle(function.body, frozenset({function.name})) for function in fit.called(call))
        if call.lineno <= last and (own or (fit.makes_data(call) and not _of_numpy(fit, call))):
            return True
    return False


def _of_numpy(fit: GraphFit, call: ast.Call) -> bool:
    """Whether a call computes, as far as its name tells: NumPy's own functions, those of Python, operations."""
    dotted = fit.dotted(call.func)
    if dotted:
        return dotted.startswith(("numpy.", "tensorflow.")) and not dotted.startswith("numpy.random.")
    return isinstance(call.func, ast.Name) and call.func.id in {*_CASTS, "len", "range", "zip", "enumerate", "print"}


def _runs_once(region: Sequence[ast.stmt], draw: ast.expr) -> bool:
    """Whether the step draws this once, whatever it computes: above it, it is drawn once as well."""
    return not any(isinstance(node, _MAY_NOT) and draw in ast.walk(node) for node in every(region))


def _is_rows(node: ast.Subscript) -> bool:
    """`x[begin : begin + size]`: rows of a name, from one Python number to another."""
    part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load) or not isinstance(part, ast.Slice):
        return False
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.Load)
    ends = [end for end in (part.lower, part.upper) if end is not None]
    return bool(ends) and all(isinstance(inner, plain) for end in ends for inner in ast.walk(end))
