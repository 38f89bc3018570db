"""Writes what some expressions of a step compute into lines above it, and names in their place."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from flatout.source.editing.dataflow import called_name


def computed_above(
    text: str, first: ast.stmt, expressions: Sequence[ast.expr], again: Collection[ast.expr] = ()
) -> tuple[str, list[str]]:
    """The new text and the names, in the order of the expressions, each of which is on one line.

    Equal expressions are computed once, but for those in `again`, which give something new each time.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    nodes = list(ast.walk(ast.parse(text)))
    taken = {node.id for node in nodes if isinstance(node, ast.Name)}
    taken |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names: dict[tuple[str, int], str] = {}
    keys = [(ast.unparse(part), index if part in again else -1) for index, part in enumerate(expressions)]
    for expression, key in zip(expressions, keys, strict=True):
        if key not in names:
            wanted = name = _name_for(expression)
            number = 2
            while name in taken or name in names.values():
                name, number = f"{wanted}_{number}", number + 1
            names[key] = name
    decorators = getattr(first, "decorator_list", ())
    begin = min([first.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    margin = rows[begin][: len(rows[begin]) - len(rows[begin].lstrip())]
    pairs = sorted(zip(expressions, keys, strict=True), key=lambda pair: (pair[0].lineno, pair[0].col_offset))
    for expression, key in reversed(pairs):
        row = rows[expression.lineno - 1].encode()
        new = names[key].encode()
        start, end = expression.col_offset, expression.end_col_offset or 0
        rows[expression.lineno - 1] = (row[:start] + new + row[end:]).decode()
    rows[begin:begin] = [f"{margin}{name} = {source}" for (source, _), name in names.items()]
    return newline.join(rows), [names[key] for key in keys]


def _name_for(expression: ast.expr) -> str:
    """By what it is made of: `state_array` for `np.expand_dims(state, 0)`, `x_rows` for `x[begin:end]`, `done_number`
    for `int(done)`, `beta` for `self.beta`."""
    if isinstance(expression, ast.Attribute):
        return expression.attr.lstrip("_")
    if isinstance(expression, ast.Subscript):
        return f"{called_name(expression.value).lstrip('_')}_rows"
    inner: ast.AST = expression
    while (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and isinstance(inner.func.value, ast.Call)
    ):
        inner = inner.func.value
    kind = "array"
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
        kind = "number"
    elif isinstance(inner, ast.Call) and ".random." in ast.unparse(inner.func):
        return called_name(inner.func)
    arguments = inner.args if isinstance(inner, ast.Call) else []
    parts = (part for argument in arguments for part in ast.walk(argument))
    found = [called_name(part) for part in parts if isinstance(part, ast.expr) and _is_named(part)]
    return f"{found[0].lstrip('_') if found else 'input'}_{kind}"


def _is_named(node: ast.expr) -> bool:
    """`done`, or `self.done`, but not the `self` of it."""
    return isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id not in ("self", "cls"))
