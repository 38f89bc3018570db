"""Follow every channel of a model from the layer that makes it to all that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.rules import Shape, rule_of
from flatout.optimize.compress.structure.units import Labels, Ledger


@dataclass(frozen=True)
class Group:
    """Units that lie in the same places: the channels of one layer, or of all layers that a residual path joins."""

    name: str
    units: tuple[int, ...]
    """Roots that may be removed."""
    layers: tuple[str, ...]
    pinned: int = 0


@dataclass(frozen=True)
class Channels:
    """What can be removed from a model, and what goes with it."""

    model: Any
    ledger: Ledger
    groups: tuple[Group, ...]
    held: dict[str, str]
    """Layers whose channels must stay, and why."""


def follow(model: Any, keep: tuple[str, ...] = ()) -> Channels:
    """Give every channel a unit, tie what depends on each other, pin what must stay."""
    ledger = Ledger()
    graph.functional(model)
    starts = [_fixed(tensor.shape, ledger, "an input of the model") for tensor in graph.functional(model).inputs]

    def call(operation: Any, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Labels]:
        inputs = _labels_in((arguments, keywords))
        shapes = [tuple(tensor.shape) for tensor in node.outputs]
        outputs = _followed(operation, inputs, shapes, ledger, (arguments, keywords))
        if operation.name in keep:
            for labels in outputs:
                ledger.pin(labels.units, f"{operation.name}: asked to be kept")
        return outputs

    for labels in graph.walk(model, starts, call):
        ledger.pin(labels.units, "an output of the model")
    ledger.settle()
    return Channels(model, ledger, _groups(ledger), _held(ledger))


def _followed(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger, given: Any) -> list[Labels]:
    rule = rule_of(operation)
    if rule is not None and not _constants(given):
        try:
            return rule(operation, inputs, shapes, ledger)
        except (AssertionError, AttributeError, ValueError, IndexError):
            # A layer that looks like one of Keras' and is built otherwise is treated as one that is not known.
            for cut in [cut for cut in ledger.cuts.values() if cut.layer is operation]:
                ledger.pin(cut.units, f"{operation.name}: built otherwise than expected")
    why = f"{operation.name} ({type(operation).__name__}): not known how channels pass through it"
    for labels in inputs:
        ledger.pin(labels.units, why)
    return [_fixed(shape, ledger, why) for shape in shapes]


def _fixed(shape: Shape, ledger: Ledger, why: str) -> Labels:
    size = shape[-1] if len(shape) > 1 else None
    return Labels(tuple(shape), max(len(shape) - 1, 0), ledger.fixed(size or 0, why))


def _labels_in(structure: Any) -> list[Labels]:
    from keras import tree

    return [value for value in tree.flatten(structure) if isinstance(value, Labels)]


def _constants(structure: Any) -> bool:
    """Arrays among the arguments of a call have sizes of their own."""
    from keras import tree

    return any(getattr(value, "ndim", 0) for value in tree.flatten(structure) if not isinstance(value, Labels))


def _places(ledger: Ledger) -> dict[int, list[tuple[int, int]]]:
    """By root: the cuts in which it lies."""
    places: dict[int, list[tuple[int, int]]] = {}
    for key, cut in ledger.cuts.items():
        for root in np.unique(ledger.roots(cut.units)):
            places.setdefault(int(root), []).append(key)
    return places


def _groups(ledger: Ledger) -> tuple[Group, ...]:
    together: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for root, keys in _places(ledger).items():
        if any(ledger.cuts[key].produces for key in keys) and root not in ledger.pinned:
            together.setdefault(tuple(sorted(keys)), []).append(root)
    groups = []
    for places, roots in together.items():
        makers = [ledger.cuts[key].layer.name for key in places if ledger.cuts[key].produces]
        names = tuple(dict.fromkeys(makers))
        groups.append(Group(names[0], tuple(sorted(roots)), names))
    return tuple(sorted(groups, key=lambda group: group.units[0]))


def _held(ledger: Ledger) -> dict[str, str]:
    held: dict[str, str] = {}
    for cut in ledger.cuts.values():
        if cut.produces:
            for root in np.unique(ledger.roots(cut.units)):
                if int(root) in ledger.pinned:
                    held.setdefault(cut.layer.name, ledger.pinned[int(root)])
    return held
