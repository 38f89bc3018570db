"""Normalizations. A batch norm treats channels one by one; the others compute statistics over several.

Removing a channel from a layer norm changes the mean and the variance of all others, even if the channel is zero: its
channels are pinned. The groups of a group norm are independent of each other, so whole groups can be removed.
"""

from __future__ import annotations

from typing import Any

from flatout.optimize.compress.structure.rules import Shape, at, follows
from flatout.optimize.compress.structure.units import Labels, Ledger


@follows("BatchNormalization")
def batch_norm(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = layer.axis % len(shapes[0])
    units = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    for variable in layer.weights:  # scale, offset, mean, variance, and those of renorm
        ledger.cut(layer, variable, 0, units)
    return [Labels(shapes[0], axis, units)] if inputs[0].axis == axis else [inputs[0].moved(shapes[0], inputs[0].axis)]


@follows("LayerNormalization", "RMSNormalization", "UnitNormalization", "Normalization")
def over_all(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    ledger.pin(inputs[0].units, f"{layer.name}: its statistics are computed over all channels")
    return [inputs[0].moved(shapes[0], inputs[0].axis)]


@follows("GroupNormalization")
def group_norm(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = layer.axis % len(shapes[0])
    units = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    groups = len(units) if layer.groups == -1 else layer.groups
    if groups == 1:
        return over_all(layer, inputs, shapes, ledger)
    table = units.reshape(groups, -1)
    for column in table.T[1:]:
        ledger.tie(table[:, 0], column)
    for variable in (layer.gamma, layer.beta):
        ledger.cut(layer, variable, 0, units)
    if layer.groups != -1:
        ledger.resize(layer, "groups", units, divisor=len(units) // groups)
    return [inputs[0].moved(shapes[0], inputs[0].axis)]
