"""Moves the gradients of a step above the guards that may leave it out.

with tf.GradientTape() as tape:                          with tf.GradientTape() as tape:
    loss = …                                                 loss = …
if tf.math.is_nan(loss):                                 gradients = tape.gradient(loss, variables)
    continue                                       →     if tf.math.is_nan(loss):
gradients = tape.gradient(loss, variables)                   continue

Tape and gradients are one function then, and the update below the guards is another. Where a guard leaves the step out,
gradients were computed that nothing reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flatout.source.editing.dataflow import Flow, bound_in, called_name, names_in
from flatout.source.editing.graph_fit import is_tape, opened
from flatout.source.editing.statement_effects import updates
from flatout.source.editing.step_search import Search

_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)


class _Move(NamedTuple):
    tape: ast.With
    gradients: list[ast.stmt]


class Moved(NamedTuple):
    text: str
    line: int
    """Where the gradients are now."""


def moved(text: str, search: Search, line: int) -> Moved | None:
    """The text with such gradients moved up, where the line is one of their tape or their own."""
    newline = "\r\n" if "\r\n" in text else "\n"
    rows = text.split(newline)
    for move in (move for level in search.levels for move in _moves(level.block)):
        first, last = move.gradients[0].lineno - 1, move.gradients[-1].end_lineno or 0
        end = move.tape.end_lineno or 0
        if not (move.tape.lineno <= line <= end or first < line <= last):
            continue
        taken = rows[first:last]
        del rows[first:last]
        rows[end:end] = taken
        return Moved(newline.join(rows), end + 1)
    return None


def _moves(block: Sequence[ast.stmt]) -> Iterator[_Move]:
    for index, tape in enumerate(block):
        if not isinstance(tape, ast.With) or not is_tape(tape):
            continue
        behind = index + 1
        while behind < len(block) and _is_guard(block[behind], opened(tape)):
            behind += 1
        guards, gradients = block[index + 1 : behind], list[ast.stmt]()
        while behind < len(block) and _is_gradient(block[behind], opened(tape)):
            gradients.append(block[behind])
            behind += 1
        below = block[behind].lineno if behind < len(block) else 0
        if guards and gradients and gradients[-1].end_lineno != below and _independent(guards, gradients):
            yield _Move(tape, gradients)


def _is_guard(statement: ast.stmt, tapes: Sequence[str]) -> bool:
    """Whether it does nothing but to leave the step, if anything."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.body[-1], _LEAVES):
        return False
    return not updates(statement) and not set(tapes) & set(names_in(statement))


def _is_gradient(statement: ast.stmt, tapes: Sequence[str]) -> bool:
    """`gradients = tape.gradient(loss, model.trainable_variables)`"""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    of_tape = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in tapes
    plain = all(isinstance(target, (ast.Name, ast.Tuple)) for target in statement.targets)
    return of_tape and plain and len(calls) == 1 and called_name(called) == "gradient"


def _independent(guards: Sequence[ast.stmt], gradients: Sequence[ast.stmt]) -> bool:
    """Whether no guard reads what the gradients set, and no test sets what they read."""
    tests = [ast.Expr(guard.test) for guard in guards if isinstance(guard, ast.If)]
    return not bound_in(gradients) & {name for guard in guards for name in names_in(guard)} and not bound_in(
        tests
    ) & set(Flow(gradients).read)
