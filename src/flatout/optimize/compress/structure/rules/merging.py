"""Layers with several inputs: sums and products tie channels, a concatenation joins them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.structure.rules import Shape, follows
from flatout.optimize.compress.structure.units import Labels, Ledger


@follows(
    *("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"),
    ops=("Add", "Subtract", "Multiply", "Maximum", "Minimum"),
)
def together(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    """Tie channel i of all inputs; an input with one channel is broadcast over all."""
    shape = shapes[0]
    whole = [one for one in inputs if one.shape and one.shape[one.axis] == shape[one.axis - len(one.shape)]]
    axis = (whole[0].axis - len(whole[0].shape)) % len(shape) if whole else len(shape) - 1
    first = None
    for one in inputs:
        own_axis = one.axis - len(one.shape) + len(shape)
        if own_axis == axis and len(one.units) == shape[axis]:
            if first is None:
                first = one.units
            else:
                ledger.tie(first, one.units)
        else:
            ledger.pin(one.units, f"{layer.name}: broadcast over channels, or along another axis")
            size = one.shape[axis - len(shape)] if len(one.shape) >= len(shape) - axis else 1
            if size != 1 and first is not None:  # its size along this axis must stay
                ledger.pin(first, f"{layer.name}: inputs with channels along different axes")
    if first is None:
        first = ledger.fixed(shape[axis] or 0, layer.name)
    return [Labels(shape, axis, first)]


@follows("Concatenate", ops=("Concatenate",))
def concatenate(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    shape = shapes[0]
    axis = layer.axis % len(shape)
    if all(one.axis == axis for one in inputs):
        return [Labels(shape, axis, np.concatenate([one.units for one in inputs]))]
    if len({one.axis for one in inputs}) == 1:  # joined along time or space: the channels are the same
        for one in inputs[1:]:
            ledger.tie(inputs[0].units, one.units)
        return [inputs[0].moved(shape, inputs[0].axis)]
    for one in inputs:
        ledger.pin(one.units, f"{layer.name}: inputs with channels along different axes")
    return [Labels(shape, len(shape) - 1, ledger.fixed(shape[-1] or 0, layer.name))]
