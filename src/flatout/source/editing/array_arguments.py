"""Takes what NumPy computes out of a step: `model(np.expand_dims(state, 0))` gets its array from a line above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from flatout.source.editing.dataflow import bound_in, names_in
from flatout.source.editing.graph_fit import GraphFit, every
from flatout.source.editing.step_search import Search


def taken_out(text: str, line: int) -> str | None:
    """The text with the arrays of the step around a line computed above it; None where there are none.

    Only arrays that are made of what was there before the step: they have the same values a few lines earlier.
    """
    module = ast.parse(text)
    search = Search(module, line)
    for region in search.regions():
        calls = list(_arrays(search.fit, region))
        if calls and all(call.lineno == call.end_lineno for call in calls):
            return _rewritten(text, region[0], calls)
    return None


def _arrays(fit: GraphFit, region: Sequence[ast.stmt]) -> Iterator[ast.Call]:
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
        if not isinstance(node, (ast.Lambda, ast.FunctionDef, ast.ListComp, ast.GeneratorExp, ast.JoinedStr)):
            waiting += list(ast.iter_child_nodes(node))


def _is_array(fit: GraphFit, call: ast.Call) -> bool:
    """`np.array(x)`, `np.array(x).astype("float32")`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("astype", "reshape", "copy"):
        return isinstance(call.func.value, ast.Call) and _is_array(fit, call.func.value)
    dotted = fit.dotted(call.func)
    return dotted.startswith("numpy.") and not dotted.startswith("numpy.random")


def _rewritten(text: str, first: ast.stmt, calls: Sequence[ast.Call]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    taken = {node.id for node in every(ast.parse(text).body) if isinstance(node, ast.Name)}
    names: dict[str, str] = {}
    for call in calls:
        source = ast.unparse(call)
        if source not in names:
            wanted = name = f"{_subject(call)}_array"
            number = 2
            while name in taken or name in names.values():
                name, number = f"{wanted}_{number}", number + 1
            names[source] = name
    margin = rows[first.lineno - 1][: len(rows[first.lineno - 1]) - len(rows[first.lineno - 1].lstrip())]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset), reverse=True):
        row = rows[call.lineno - 1].encode()
        new = names[ast.unparse(call)].encode()
        rows[call.lineno - 1] = (row[: call.col_offset] + new + row[call.end_col_offset or 0 :]).decode()
    rows[first.lineno - 1 : first.lineno - 1] = [f"{margin}{name} = {source}" for source, name in names.items()]
    return newline.join(rows)


def _subject(call: ast.Call) -> str:
    """What the array is made of: `state` for `np.expand_dims(state, 0)`."""
    inner: ast.AST = call
    while (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and isinstance(inner.func.value, ast.Call)
    ):
        inner = inner.func.value
    arguments = inner.args if isinstance(inner, ast.Call) else []
    found = [name for argument in arguments for name in names_in(argument)]
    return found[0].lstrip("_") if found else "input"
