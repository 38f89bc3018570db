"""What a call of a traced function passes for Python numbers and NumPy arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from flatout.source.editing.dataflow import names_in
from flatout.source.editing.graph_fit import Obstacle, every
from flatout.source.editing.step_arguments import Surroundings
from flatout.source.editing.step_split import NotSplit


def tensors(around: Surroundings, body: Sequence[ast.stmt], given: Sequence[str], unproven: bool) -> dict[str, str]:
    """Name → expression, where the name itself would be traced anew for each value or has another type in a graph.

    A Python number takes the type of the tensor beside it; a tensor does not. So it is passed as float32, which most
    programs compute in. Raises `NotSplit` where Python needs the number itself.
    """
    numbers = around.counters() & set(given)
    loose = {name for name in given if name not in numbers and around.is_number(name)}
    arrays = {name for name in given if name not in numbers | loose and around.is_array(name)}
    if unproven and (numbers or loose or arrays or _indexes(body, set(given))):
        raise NotSplit(Obstacle(body[0].lineno, "begins a step that reads numbers or arrays of Python"))
    tf = next((name for name, full in around.fit.modules.items() if full == "tensorflow"), "")
    found: dict[str, str] = {}
    for name in sorted(numbers):
        use = _python_use(body, name)
        if use is not None or not tf:
            line = use or body[0].lineno
            raise NotSplit(Obstacle(line, f"needs the Python number {name}, for which each value is traced again"))
        found[name] = f"{tf}.constant({name}, {tf}.float32)"
    for name in sorted(loose):
        if tf and _python_use(body, name) is None:
            typed = f"{tf}.cast({name}, {tf}.float32)" if _in_arithmetic(body, name) else ""
            found[name] = typed or f"{tf}.convert_to_tensor({name})"
    for name in sorted(arrays):
        if tf and _in_arithmetic(body, name):
            found[name] = f"{tf}.cast({name}, {tf}.float32)"
    return found


def _python_use(body: Sequence[ast.stmt], name: str) -> int | None:
    """The line at which a number is an index, a condition or a length."""
    for node in every(body):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Subscript):
            parts = [node.slice]
        elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            parts = [node.test]
        elif isinstance(node, ast.For):
            parts = [node.iter]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        if any(name in names_in(part) for part in parts):
            return int(getattr(node, "lineno", 0))
    return None


def _in_arithmetic(body: Sequence[ast.stmt], name: str) -> bool:
    """`rewards + 0.99 * values`: an array of doubles would take the type of the tensor beside it."""
    return any(
        isinstance(node, ast.BinOp)
        and any(isinstance(side, ast.Name) and side.id == name for side in (node.left, node.right))
        for node in every(body)
    )


def _indexes(body: Sequence[ast.stmt], given: set[str]) -> bool:
    return any(isinstance(node, ast.Subscript) and given & set(names_in(node.slice)) for node in every(body))
