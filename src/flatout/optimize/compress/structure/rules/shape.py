"""Layers that rearrange: flatten, reshape, permute, repeat. The units are rearranged in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.structure.rules import Shape, follows
from flatout.optimize.compress.structure.units import Array, Labels, Ledger


@follows("Flatten")
def flatten(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    labels = inputs[0]
    if (
        layer.data_format == "channels_first" and len(labels.shape) > 2
    ):  # Keras moves the channels last before it flattens
        spatial = (labels.shape[0], *labels.shape[2:], labels.shape[1])
        order = [axis if axis == 0 else (len(spatial) - 1 if axis == 1 else axis - 1) for axis in range(len(spatial))]
        labels = Labels(spatial, order[labels.axis], labels.units)
    return [reshaped(labels, shapes[0], ledger, layer.name)]


@follows("Reshape")
def reshape(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    labels = reshaped(inputs[0], shapes[0], ledger, layer.name)
    if layer.target_shape[labels.axis - 1] != -1:
        ledger.resize(layer, "target_shape", ledger.reads(layer, "out", labels.units), index=labels.axis - 1)
    return [labels]


@follows("Permute")
def permute(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    return [inputs[0].moved(shapes[0], (0, *layer.dims).index(inputs[0].axis))]


@follows("RepeatVector")
def repeat(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    return [inputs[0].moved(shapes[0], 2)]


def reshaped(labels: Labels, shape: Shape, ledger: Ledger, name: str) -> Labels:
    """The labels after a reshape: write the unit at every index of a sample, reshape, find the axis they vary along.

    If they vary along several axes, they are tied until they do not: 64 channels made from the 3136 units of a dense
    layer are 64 sets of 49 units each. With sizes that are known only at run time, all units are pinned.
    """
    inner, outer = labels.shape[1:], shape[1:]
    if len(inner) == len(outer) and labels.axis and inner[labels.axis - 1] == outer[labels.axis - 1]:
        others = [axis for axis in range(len(inner)) if axis != labels.axis - 1]
        if all(inner[axis] == outer[axis] for axis in others):
            return labels.moved(shape, labels.axis)
    if None in inner or None in outer or not outer:
        ledger.pin(labels.units, f"{name}: sizes that are known only at run time")
        return Labels(shape, len(shape) - 1, ledger.fixed((shape[-1] if outer else 0) or 0, name))
    full = [1] * len(inner)
    full[labels.axis - 1] = len(labels.units)
    table = np.broadcast_to(labels.units.reshape(full), inner).reshape(outer)  # type: ignore[arg-type]
    axis = next((axis for axis in reversed(range(len(outer))) if _varies_only(table, axis)), None)
    if axis is None:
        axis = max(range(len(outer)), key=lambda one: (outer[one] or 0) > 1 and one)
        flat = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])
        for row in flat[1:]:
            ledger.tie(flat[0], row)
    line = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])[0]
    return Labels(shape, axis + 1, line)


def _varies_only(table: Array, axis: int) -> bool:
    lines = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])
    return lines.shape[1] > 1 and bool((lines == lines[0]).all())
