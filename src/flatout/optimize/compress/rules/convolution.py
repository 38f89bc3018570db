"""Convolutions: plain, grouped, transposed, depthwise, separable; one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.rules import Shape, at, channel_axis, follows, per_element
from flatout.optimize.compress.units import Array, Labels, Ledger, positions


@follows("Conv1D", "Conv2D", "Conv3D")
def convolution(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    taken = ledger.takes(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = ledger.own(layer, "out", layer.filters)
    groups = layer.groups
    if groups > 1:
        # Every group keeps as many channels as the others: the same positions leave all groups together.
        _tie_groups(taken, groups, ledger)
        _tie_groups(made, groups, ledger)
    ledger.cut(layer, layer.kernel, -2, taken[: len(taken) // groups])
    return [_made(layer, layer.kernel, -1, made, shapes[0], axis, ledger)]


@follows("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def transposed(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    taken = ledger.takes(layer, "in", at(inputs[0], axis, ledger, layer.name))
    ledger.cut(layer, layer.kernel, -1, taken)
    return [_made(layer, layer.kernel, -2, ledger.own(layer, "out", layer.filters), shapes[0], axis, ledger)]


@follows("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    taken = ledger.takes(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = np.repeat(taken, layer.depth_multiplier)
    ledger.cut(layer, layer.kernel, -2, taken, produces=True)
    ledger.cut(layer, layer.bias, 0, made, produces=True)
    _keep_if_mixed(layer, made, ledger)
    ledger.multiplied(layer.kernel, positions(shapes[0], axis))
    return [Labels(shapes[0], axis, made)]


@follows("SeparableConv1D", "SeparableConv2D")
def separable(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    taken = ledger.takes(layer, "in", at(inputs[0], axis, ledger, layer.name))
    ledger.cut(layer, layer.depthwise_kernel, -2, taken)
    ledger.cut(layer, layer.pointwise_kernel, -2, np.repeat(taken, layer.depth_multiplier))
    ledger.multiplied(layer.depthwise_kernel, positions(shapes[0], axis))
    made = ledger.own(layer, "out", layer.filters)
    return [_made(layer, layer.pointwise_kernel, -1, made, shapes[0], axis, ledger)]


def _made(layer: Any, kernel: Any, place: int, made: Array, shape: Shape, axis: int, ledger: Ledger) -> Labels:
    ledger.cut(layer, kernel, place, made, produces=True)
    ledger.cut(layer, layer.bias, 0, made, produces=True)
    ledger.resize(layer, "filters", made)
    ledger.multiplied(kernel, positions(shape, axis))
    _keep_if_mixed(layer, made, ledger)
    return Labels(shape, axis, made)


def _keep_if_mixed(layer: Any, made: Array, ledger: Ledger) -> None:
    if not per_element(layer.activation):
        ledger.pin(made, f"{layer.name}: its activation looks at all channels")


def _tie_groups(units: Array, groups: int, ledger: Ledger) -> None:
    table = units.reshape(groups, -1)
    for row in table[1:]:
        ledger.tie(table[0], row)
