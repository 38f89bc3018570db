"""The idioms by which a loop accumulates values: sums of lists, and uses of a list that the loop fills."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.source.editing.sample_loops import Scope, reads_outside

MEAN, SUM, JOIN, STACK = "mean", "sum", "join", "stack"

_ADDED = (
    "[A + B for A, B in zip(SUMS, NEW)]",
    "[B + A for A, B in zip(SUMS, NEW)]",
    "[tf.add(A, B) for A, B in zip(SUMS, NEW)]",
    "tf.nest.map_structure(tf.add, SUMS, NEW)",
)
LISTS_ADDED_UP = (
    *(f"SUMS = {added}" for added in _ADDED),
    *(f"SUMS = NEW if SUMS is None else {added}" for added in _ADDED),
    *(f"SUMS = {added} if SUMS else NEW" for added in _ADDED),
    *(f"if SUMS is None:\n    SUMS = NEW\nelse:\n    SUMS = {added}" for added in _ADDED),
    *(f"if SUMS is None:\n    SUMS = list(NEW)\nelse:\n    SUMS = {added}" for added in _ADDED),
    *(f"if not SUMS:\n    SUMS = NEW\nelse:\n    SUMS = {added}" for added in _ADDED),
    "for A, B in zip(SUMS, NEW):\n    A.assign_add(B)",
    "for A, B in enumerate(NEW):\n    SUMS[A] += B",
    "for A, B in enumerate(NEW):\n    SUMS[A] = SUMS[A] + B",
    "for A in range(len(NEW)):\n    SUMS[A] += NEW[A]",
    "for A in range(len(NEW)):\n    SUMS[A] = SUMS[A] + NEW[A]",
)
"""Statements that add one list to another, element by element."""

USES = {
    MEAN: ("tf.reduce_mean(SUMS)", "tf.reduce_mean(SUMS, axis=0)", "tf.reduce_mean(SUMS, 0)", "np.mean(SUMS)",
           "tf.reduce_mean(tf.stack(SUMS))", "tf.reduce_mean(tf.convert_to_tensor(SUMS))", "sum(SUMS) / len(SUMS)",
           "tf.add_n(SUMS) / len(SUMS)", "tf.reduce_sum(SUMS) / len(SUMS)"),
    SUM: ("tf.add_n(SUMS)", "tf.reduce_sum(SUMS)", "tf.reduce_sum(tf.stack(SUMS))", "sum(SUMS)", "np.sum(SUMS)"),
    JOIN: ("tf.concat(SUMS, 0)", "tf.concat(SUMS, axis=0)", "np.concatenate(SUMS)", "np.concatenate(SUMS, 0)",
           "np.concatenate(SUMS, axis=0)", "np.vstack(SUMS)"),
    STACK: ("tf.stack(SUMS)", "np.stack(SUMS)", "np.array(SUMS)"),
}  # fmt: skip
"""What is computed from a list of values, one per iteration."""


def _idiom(text: str) -> re.Pattern[str]:
    """A pattern for `ast.unparse`: capitals are names, NEW is any expression, modules may have other names."""
    seen: set[str] = set()

    def as_group(match: re.Match[str]) -> str:
        word = match.group()
        if word in ("tf", "np"):
            return r"\w+"
        if word in seen:
            return f"(?P={word})"
        seen.add(word)
        return rf"(?P<{word}>.+?)" if word == "NEW" else rf"(?P<{word}>[A-Za-z_]\w*)"

    return re.compile(re.sub(r"\b(A|B|SUMS|NEW|tf|np)\b", as_group, re.escape(text).replace(r"\ ", " ")))


_LISTS = tuple(map(_idiom, LISTS_ADDED_UP))
_USES = {use: tuple(map(_idiom, texts)) for use, texts in USES.items()}


def lists_added_up(statement: ast.stmt) -> tuple[str, list[ast.expr]] | None:
    """The name that accumulates lists, and each occurrence of the list of this iteration."""
    text = ast.unparse(statement)
    for pattern in _LISTS:
        match = pattern.fullmatch(text)
        if match is not None:
            return match["SUMS"], list(_written(statement, match["NEW"]))
    return None


def _written(node: ast.AST, text: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr) and ast.unparse(node) == text:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _written(child, text)


def use_of(scope: Scope, loop: ast.For, name: str) -> str | None:
    """How a list is used outside of a loop, if it has only one, known, use."""
    above = {id(child): parent for parent in ast.walk(scope) for child in ast.iter_child_nodes(parent)}
    found = {_use(part, name, above) for part in reads_outside(scope, loop, (name,))}
    return found.pop() if len(found) == 1 else None


def _use(part: ast.AST, name: str, above: dict[int, ast.AST]) -> str | None:
    """The use by the largest known expression around it."""
    found, holder = None, above.get(id(part))
    while isinstance(holder, ast.expr):
        text = ast.unparse(holder)
        for use, patterns in _USES.items():
            matches = (pattern.fullmatch(text) for pattern in patterns)
            if any(match is not None and match["SUMS"] == name for match in matches):
                found = use
        holder = above.get(id(holder))
    return found
