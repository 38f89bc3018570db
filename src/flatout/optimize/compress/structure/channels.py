"""Follows every channel of a model from the layer that makes it to all layers that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.rules import Shape, rule_of
from flatout.optimize.compress.structure.units import Labels, Ledger


@dataclass(frozen=True)
class Group:
    """Units with the same makers and readers: the channels of one layer, or of all layers on a residual path."""

    name: str
    units: tuple[int, ...]
    """Roots that may be removed."""
    layers: tuple[str, ...]
    pinned: int = 0


@dataclass(frozen=True)
class Channels:
    """What can be removed from a model, and what has to be removed with it."""

    model: Any
    ledger: Ledger
    groups: tuple[Group, ...]
    held: dict[str, str]
    """Layers whose channels must stay, and why."""


def follow(model: Any, keep: tuple[str, ...] = ()) -> Channels:
    """Give every channel a unit, tie units that depend on each other, pin those that must stay."""
    ledger = Ledger()
    graph.functional(model)
    starts = [_fixed(tensor.shape, ledger, "an input of the model") for tensor in graph.functional(model).inputs]

    def call(operation: Any, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Labels]:
        inputs = _labels_in((arguments, keywords))
        shapes = [tuple(tensor.shape) for tensor in node.outputs]
        outputs = _follow_call(operation, inputs, shapes, ledger, (arguments, keywords))
        if operation.name in keep:
            for labels in outputs:
                ledger.pin(labels.units, f"{operation.name}: named in `keep`")
        return outputs

    for labels in graph.walk(model, starts, call):
        ledger.pin(labels.units, "an output of the model")
    ledger.freeze()
    return Channels(model, ledger, _groups(ledger), _held_layers(ledger))


def _follow_call(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger, given: Any) -> list[Labels]:
    rule = rule_of(operation)
    if rule is not None and not _has_constants(given):
        try:
            return rule(operation, inputs, shapes, ledger)
        except (AssertionError, AttributeError, ValueError, IndexError):
            # A layer with the name of a Keras layer that is built differently counts as unknown.
            for cut in [cut for cut in ledger.cuts.values() if cut.layer is operation]:
                ledger.pin(cut.units, f"{operation.name}: not built as expected")
    why = f"{operation.name} ({type(operation).__name__}): flatout does not know how channels pass through it"
    for labels in inputs:
        ledger.pin(labels.units, why)
    return [_fixed(shape, ledger, why) for shape in shapes]


def _fixed(shape: Shape, ledger: Ledger, why: str) -> Labels:
    size = shape[-1] if len(shape) > 1 else None
    return Labels(tuple(shape), max(len(shape) - 1, 0), ledger.fixed(size or 0, why))


def _labels_in(structure: Any) -> list[Labels]:
    from keras import tree

    return [value for value in tree.flatten(structure) if isinstance(value, Labels)]


def _has_constants(structure: Any) -> bool:
    """Whether the arguments of a call contain arrays, whose sizes are fixed."""
    from keras import tree

    return any(getattr(value, "ndim", 0) for value in tree.flatten(structure) if not isinstance(value, Labels))


def _cuts_by_root(ledger: Ledger) -> dict[int, list[tuple[int, int]]]:
    """The keys of the cuts that contain each root."""
    found: dict[int, list[tuple[int, int]]] = {}
    for key, cut in ledger.cuts.items():
        for root in np.unique(ledger.roots(cut.units)):
            found.setdefault(int(root), []).append(key)
    return found


def _groups(ledger: Ledger) -> tuple[Group, ...]:
    together: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for root, keys in _cuts_by_root(ledger).items():
        if any(ledger.cuts[key].produces for key in keys) and root not in ledger.pinned:
            together.setdefault(tuple(sorted(keys)), []).append(root)
    groups = []
    for shared, roots in together.items():
        makers = [ledger.cuts[key].layer.name for key in shared if ledger.cuts[key].produces]
        names = tuple(dict.fromkeys(makers))
        groups.append(Group(names[0], tuple(sorted(roots)), names))
    return tuple(sorted(groups, key=lambda group: group.units[0]))


def _held_layers(ledger: Ledger) -> dict[str, str]:
    held: dict[str, str] = {}
    for cut in ledger.cuts.values():
        if cut.produces:
            for root in np.unique(ledger.roots(cut.units)):
                if int(root) in ledger.pinned:
                    held.setdefault(cut.layer.name, ledger.pinned[int(root)])
    return held
