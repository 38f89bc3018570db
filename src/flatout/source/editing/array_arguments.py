"""Takes what NumPy computes out of a step: `model(np.expand_dims(state, 0))` gets its array from a line above it, and
`model(x[begin : begin + size])` or `model(x[rows])` its rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from flatout.source import side_effects
from flatout.source.editing.dataflow import bound_in, called_name, names_in
from flatout.source.editing.graph_fit import GraphFit, every
from flatout.source.editing.step_search import Search, Step

_LATER = (ast.Lambda, ast.FunctionDef, ast.ListComp, ast.GeneratorExp, ast.JoinedStr)
"""What is in them is not computed where it is written, or with names of its own."""

_OF_ARRAYS = {"astype", "reshape", "shape", "ndim", "dtype", "T", "copy", "flatten", "ravel", "mean", "sum"}


def taken_out(text: str, line: int) -> str | None:
    """The text with the arrays of the step around a line computed above it; None where there are none.

    Only arrays that are made of what was there before the step: they have the same values a few lines earlier.
    """
    module = ast.parse(text)
    search = Search(module, line)
    for region in search.regions():
        arrays = list(_arrays(search.fit, region))
        if arrays and all(array.lineno == array.end_lineno for array in arrays):
            return _rewritten(text, region[0], arrays)
    return None


def rows_taken_out(text: str, fit: GraphFit, step: Step) -> str | None:
    """The text with the rows that a step picks (`x[rows]`) picked above it; None where it picks none.

    A graph cannot hold them: in there the index is a tensor, by which neither an array nor a tensor gives rows.
    """
    arrays = sorted(_picked(fit, step.body), key=lambda array: (array.lineno, array.col_offset))
    if not arrays or any(array.lineno != array.end_lineno for array in arrays):
        return None
    return _rewritten(text, step.body[0], arrays)


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
            own = set(names_in(node))
            used = own - set(fit.modules)
            if used and not own & written and all(fit.makes_data(c) for c in ast.walk(node) if isinstance(c, ast.Call)):
                yield node
                continue
        if isinstance(node, ast.Subscript) and _is_rows(node) and not set(names_in(node)) & written:
            yield node
            continue
        if not isinstance(node, _LATER):
            waiting += list(ast.iter_child_nodes(node))


def _is_array(fit: GraphFit, call: ast.Call) -> bool:
    """`np.array(x)`, `np.array(x).astype("float32")`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("astype", "reshape", "copy"):
        return isinstance(call.func.value, ast.Call) and _is_array(fit, call.func.value)
    dotted = fit.dotted(call.func)
    return dotted.startswith("numpy.") and not dotted.startswith("numpy.random")


def _is_rows(node: ast.Subscript) -> bool:
    """`x[begin : begin + size]`: rows of a name, from one Python number to another."""
    part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load) or not isinstance(part, ast.Slice):
        return False
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.Load)
    ends = [end for end in (part.lower, part.upper) if end is not None]
    return bool(ends) and all(isinstance(inner, plain) for end in ends for inner in ast.walk(end))


def _rewritten(text: str, first: ast.stmt, arrays: Sequence[ast.expr]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    taken = {node.id for node in every(ast.parse(text).body) if isinstance(node, ast.Name)}
    names: dict[str, str] = {}
    for array in arrays:
        source = ast.unparse(array)
        if source not in names:
            wanted = name = _name_for(array)
            number = 2
            while name in taken or name in names.values():
                name, number = f"{wanted}_{number}", number + 1
            names[source] = name
    margin = rows[first.lineno - 1][: len(rows[first.lineno - 1]) - len(rows[first.lineno - 1].lstrip())]
    for array in sorted(arrays, key=lambda array: (array.lineno, array.col_offset), reverse=True):
        row = rows[array.lineno - 1].encode()
        new = names[ast.unparse(array)].encode()
        rows[array.lineno - 1] = (row[: array.col_offset] + new + row[array.end_col_offset or 0 :]).decode()
    rows[first.lineno - 1 : first.lineno - 1] = [f"{margin}{name} = {source}" for source, name in names.items()]
    return newline.join(rows)


def _name_for(array: ast.expr) -> str:
    """By what the array is made of: `state_array` for `np.expand_dims(state, 0)`, `x_rows` for `x[begin:end]`."""
    if isinstance(array, ast.Subscript):
        return f"{called_name(array.value).lstrip('_')}_rows"
    inner: ast.AST = array
    while (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and isinstance(inner.func.value, ast.Call)
    ):
        inner = inner.func.value
    arguments = inner.args if isinstance(inner, ast.Call) else []
    found = [name for argument in arguments for name in names_in(argument)]
    return f"{found[0].lstrip('_') if found else 'input'}_array"
