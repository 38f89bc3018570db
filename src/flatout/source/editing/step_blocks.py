"""Statements in a step and around it: the blocks around a line, what is left of a step, small forms of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from flatout.source.editing.step_arguments import Level
from flatout.source.editing.step_split import Split, grown


def with_lists(block: Sequence[ast.stmt], index: int, last: int) -> int:
    """Where the empty lists and dictionaries are made that the statements from `index` fill: right above them, or
    `index` itself.

    A step that joins its losses (`tf.add_n(losses)`) needs the list, and makes it.
    """
    filled = {name for statement in block[index : last + 1] for name in grown(statement)}
    first = index
    while first and _makes_lists(block[first - 1], filled):
        first -= 1
    return first


def _makes_lists(statement: ast.stmt, names: set[str]) -> bool:
    """`losses = []`, `losses, accuracies = [], []`, `logs = {}`."""
    if not isinstance(statement, ast.Assign):
        return False
    made = [part for target in statement.targets for part in getattr(target, "elts", [target])]
    values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
    empty = all(ast.unparse(value) in ("[]", "{}", "dict()", "list()") for value in values)
    same = len(values) == len(made) or (len(statement.targets) == 1 and len(made) == 1)
    return empty and same and all(isinstance(part, ast.Name) and part.id in names for part in made)


def without_moved(body: Sequence[ast.stmt], parts: Split) -> list[ast.stmt]:
    """The statements without those that were moved out of them."""
    moved = {id(statement) for statement in (*parts.before, *parts.after)}
    found: list[ast.stmt] = []
    for statement in body:
        if id(statement) in moved:
            continue
        if isinstance(statement, ast.With) and any(id(node) in moved for node in ast.walk(statement)):
            inner = without_moved(statement.body, parts) or [ast.Pass()]
            found.append(ast.copy_location(ast.With(items=statement.items, body=inner), statement))
        else:
            found.append(statement)
    return found


def levels_of(module: ast.Module, line: int) -> Iterator[Level]:
    """The blocks around a line, outermost first."""
    owner: ast.AST | None = module
    while owner is not None:
        inner = None
        found = [getattr(owner, field, None) for field in ("body", "orelse", "finalbody")]
        found += [handler.body for handler in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ()))]
        for block in found:
            if not isinstance(block, list):
                continue
            for index, statement in enumerate(block):
                if statement.lineno <= line <= (statement.end_lineno or 0):
                    yield Level(owner, block, index)
                    inner = statement
        owner = inner


def names_only(statement: ast.stmt) -> bool:
    """`params = model.trainable_variables`, between a tape and its gradient."""
    if not isinstance(statement, ast.Assign) or not all(map(is_plain, statement.targets)):
        return False
    return not any(isinstance(node, ast.Call) for node in ast.walk(statement))


def is_plain(target: ast.expr) -> bool:
    return all(isinstance(node, (ast.Name, ast.Tuple, ast.Store)) for node in ast.walk(target))
