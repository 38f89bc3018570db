"""Derives students: smaller versions of the teacher, with narrower layers and fewer residual blocks."""

from __future__ import annotations

import math
from typing import Any

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.structure import graph, importance, shrink
from flatout.optimize.compress.structure.channels import follow


def derive(teacher: Any, *, width: float = 1.0, depth: float = 1.0, inherit: bool = True) -> Any:
    """A model with this share of the teacher's channels and of its residual blocks.

    With `inherit` it starts with the teacher's weights of the most important channels and blocks, otherwise with fresh
    ones.
    """
    for name, share in (("width", width), ("depth", depth)):
        if not 0 < share <= 1:
            raise CompressionRefused(f"{name} is a share between 0 and 1, not {share}.")
    student = shallower(teacher, depth) if depth < 1 else graph.duplicate(teacher)
    student = narrower(student, width) if width < 1 else student
    if not inherit:
        student = graph.Rebuilt(student).model
    return graph.compile_like(student, teacher)


def narrower(model: Any, share: float) -> Any:
    """The model with this share of the channels of every group."""
    known = follow(model)
    if not known.groups:
        raise CompressionRefused(f"No channel of {model.name} can be removed, so it cannot be made narrower.")
    scores = importance.by_weights(known)
    removed: set[int] = set()
    for group in known.groups:
        kept = max(1, math.ceil(share * len(group.units)))
        removed.update(importance.lowest(group, scores)[: len(group.units) - kept])
    return shrink.remove_units(known, frozenset(removed))


def shallower(model: Any, share: float) -> Any:
    """The model without some residual blocks, evenly spread; only the shortcut of a removed block remains."""
    wiring = graph.wiring(model)
    blocks = shortcuts(wiring)
    if not blocks:
        raise CompressionRefused(
            f"{model.name} has no residual block whose shortcut is the block's own input, so no block can be removed."
        )
    removed = len(blocks) - max(1, math.ceil(share * len(blocks)))
    order = sorted(blocks)
    skipped = {order[(2 * i + 1) * len(order) // (2 * removed)] for i in range(removed)} if removed else set()

    def call(number: int, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if number in skipped:
            return arguments[0][blocks[number]]
        return layer()(*arguments, **keywords)

    rebuilt = graph.Rebuilt(model, call=call)
    kept = {id(layer) for layer in graph.layers(rebuilt.model)}
    pairs = [(old, rebuilt.layers.get(id(old))) for old in graph.layers(model)]
    graph.copy_weights([(old, new) for old, new in pairs if id(new) in kept])
    return rebuilt.model


def shortcuts(wiring: graph.Wiring) -> dict[int, int]:
    """By the number of an Add: which of its inputs is the shortcut, from which the other is computed."""
    found = {}
    sources: dict[int, frozenset[int]] = {tensor: frozenset({tensor}) for tensor in wiring.inputs}
    for step in wiring.steps:
        behind = frozenset().union(*(sources[tensor] for tensor in step.inputs))
        for tensor in step.outputs:
            sources[tensor] = behind | {tensor}
        if type(step.operation).__name__ == "Add" and len(step.inputs) == 2 and hasattr(step.operation, "weights"):
            one, other = step.inputs
            if one != other and one in sources[other]:
                found[step.number] = 0
            elif one != other and other in sources[one]:
                found[step.number] = 1
    return found
