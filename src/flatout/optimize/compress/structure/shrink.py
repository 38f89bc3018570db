"""Removes units from a model: rebuilds every layer with its new width and the remaining weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.channels import Channels
from flatout.optimize.compress.structure.units import Resize


def remove_units(channels: Channels, removed: frozenset[int]) -> Any:
    """The model without these units."""
    ledger = channels.ledger
    resizes: dict[int, list[Resize]] = {}
    for resize in ledger.resizes.values():
        resizes.setdefault(id(resize.layer), []).append(resize)
    cuts: dict[int, list[tuple[int, Any]]] = {}
    for cut in ledger.cuts.values():
        cuts.setdefault(id(cut.variable), []).append((cut.axis, ledger.kept(cut.units, removed)))

    def make(layer: Any, config: dict[str, Any]) -> Any:
        for resize in resizes.get(id(layer), []):
            count = len(ledger.kept(resize.units, removed)) // resize.divisor
            if resize.index is None:
                config[resize.key] = count
            else:
                entry = list(config[resize.key])
                entry[resize.index] = count
                config[resize.key] = tuple(entry)
        return graph.remake(layer, config)

    def select(variable: Any, value: Any) -> Any:
        for axis, keep in cuts.get(id(variable), []):
            value = np.take(value, keep, axis=axis)
        return value

    rebuilt = graph.Rebuilt(channels.model, make)
    pairs = [(layer, rebuilt.layers[id(layer)]) for layer in graph.layers(channels.model)]
    graph.copy_weights(pairs, select)
    return graph.compile_like(rebuilt.model, channels.model)
