"""Divides an `if` that ends a step: its first statements are operations, its last ones are Python's.

if self.learns_alpha:                                   if self.learns_alpha:
    gradient = tape.gradient(loss, [alpha])                 gradient = tape.gradient(loss, [alpha])
    optimizer.apply_gradients([(gradient, alpha)])   →      optimizer.apply_gradients([(gradient, alpha)])
    self.summaries["loss"] = loss                       if self.learns_alpha:
                                                            self.summaries["loss"] = loss
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from flatout.source.editing.dataflow import bound_in, called_name, names_in
from flatout.source.editing.graph_fit import UPDATES, GraphFit, every
from flatout.source.editing.step_search import Search

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.Not, ast.BoolOp, ast.boolop, ast.expr_context)


def divided(text: str, search: Search) -> str | None:
    """The text with such statements of the blocks around a line divided; None where there are none."""
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    found: list[tuple[int, str]] = []
    for level in search.levels:
        for statement in level.block:
            index = _end_of_graph(search.fit, statement)
            if index is not None and isinstance(statement, ast.If):
                row = rows[statement.lineno - 1]
                margin = row[: len(row) - len(row.lstrip())]
                found.append((statement.body[index].lineno, f"{margin}if {ast.unparse(statement.test)}:"))
    for line, guard in sorted(found, reverse=True):
        rows.insert(line - 1, guard)
    return newline.join(rows) if found else None


def _end_of_graph(fit: GraphFit, statement: ast.stmt) -> int | None:
    """The first statement in it that a graph cannot hold, where all behind that one cannot be held either."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return None
    if not all(isinstance(node, _PLAIN) for node in ast.walk(statement.test)):
        return None
    fits = [fit.obstacle([inner]) is None for inner in statement.body]
    if not any(fits) or all(fits):
        return None
    index = fits.index(False)
    first, last = statement.body[:index], statement.body[index:]
    if any(fits[index:]) or not _updates(first) or last[0].lineno == first[-1].end_lineno:
        return None
    set_there = bound_in(first) | {node.attr for node in every(first) if _is_stored(node)}  # type: ignore[attr-defined]
    read = {*names_in(statement.test), *(n.attr for n in ast.walk(statement.test) if isinstance(n, ast.Attribute))}
    return None if set_there & read else index


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _updates(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node.func) in UPDATES for node in every(statements))
