"""Layers with kernels: convolutions, dense layers and embeddings, attention, recurrent layers.

The units inside an attention layer are whole heads. A hidden unit of a recurrent layer is a column of each gate and a
row of the recurrent kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.structure.rules import Shape, at, channel_axis, follows, per_element
from flatout.optimize.compress.structure.units import Array, Labels, Ledger, positions

GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}


@follows("Conv1D", "Conv2D", "Conv3D")
def convolution(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    read = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = ledger.own(layer, "out", layer.filters)
    groups = layer.groups
    if groups > 1:
        # All groups keep the same number of channels: the same indices are removed from all groups together.
        _tie_groups(read, groups, ledger)
        _tie_groups(made, groups, ledger)
    ledger.cut(layer, layer.kernel, -2, read[: len(read) // groups])
    return [_made(layer, layer.kernel, -1, made, shapes[0], axis, ledger)]


@follows("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def transposed(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    read = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    ledger.cut(layer, layer.kernel, -1, read)
    return [_made(layer, layer.kernel, -2, ledger.own(layer, "out", layer.filters), shapes[0], axis, ledger)]


@follows("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    read = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = np.repeat(read, layer.depth_multiplier)
    ledger.cut(layer, layer.kernel, -2, read, produces=True)
    ledger.cut(layer, layer.bias, 0, made, produces=True)
    _pin_if_mixed(layer, made, ledger)
    ledger.add_work(layer.kernel, positions(shapes[0], axis))
    return [Labels(shapes[0], axis, made)]


@follows("SeparableConv1D", "SeparableConv2D")
def separable(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    read = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    ledger.cut(layer, layer.depthwise_kernel, -2, read)
    ledger.cut(layer, layer.pointwise_kernel, -2, np.repeat(read, layer.depth_multiplier))
    ledger.add_work(layer.depthwise_kernel, positions(shapes[0], axis))
    made = ledger.own(layer, "out", layer.filters)
    return [_made(layer, layer.pointwise_kernel, -1, made, shapes[0], axis, ledger)]


def _made(layer: Any, kernel: Any, kernel_axis: int, made: Array, shape: Shape, axis: int, ledger: Ledger) -> Labels:
    ledger.cut(layer, kernel, kernel_axis, made, produces=True)
    ledger.cut(layer, layer.bias, 0, made, produces=True)
    ledger.resize(layer, "filters", made)
    ledger.add_work(kernel, positions(shape, axis))
    _pin_if_mixed(layer, made, ledger)
    return Labels(shape, axis, made)


def _pin_if_mixed(layer: Any, made: Array, ledger: Ledger) -> None:
    if not per_element(layer.activation):
        ledger.pin(made, f"{layer.name}: its activation depends on all channels")


def _tie_groups(units: Array, groups: int, ledger: Ledger) -> None:
    table = units.reshape(groups, -1)
    for row in table[1:]:
        ledger.tie(table[0], row)


@follows("Dense")
def dense(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = len(shapes[0]) - 1
    read = ledger.reads(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = ledger.own(layer, "out", layer.units)
    plain = not getattr(layer, "quantization_mode", None) and not getattr(layer, "lora_enabled", False)
    if plain:
        ledger.cut(layer, layer.kernel, 0, read)
        ledger.cut(layer, layer.kernel, 1, made, produces=True)
        ledger.cut(layer, layer.bias, 0, made, produces=True)
        ledger.resize(layer, "units", made)
        ledger.add_work(layer.kernel, positions(shapes[0], axis))
    else:
        ledger.pin(read, f"{layer.name}: quantized or with LoRA weights")
    if not plain or not per_element(layer.activation):
        ledger.pin(made, f"{layer.name}: its activation depends on all channels")
    return [Labels(shapes[0], axis, made)]


@follows("Embedding")
def embedding(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    made = ledger.own(layer, "out", layer.output_dim)
    if getattr(layer, "quantization_mode", None) or getattr(layer, "lora_enabled", False):
        ledger.pin(made, f"{layer.name}: quantized or with LoRA weights")
    else:
        ledger.cut(layer, layer.embeddings, 1, made, produces=True)
        ledger.resize(layer, "output_dim", made)
    return [Labels(shapes[0], len(shapes[0]) - 1, made)]


@follows("MultiHeadAttention")
def attention(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    if getattr(layer, "_use_gate", False):
        raise ValueError("a gate between heads and output")
    query, value = inputs[0], inputs[1]
    key = inputs[2] if len(inputs) > 2 and len(inputs[2].shape) == len(value.shape) else value
    name = layer.name
    heads = ledger.own(layer, "heads", layer.num_heads)
    parts = {"query": (query, layer._query_dense), "key": (key, layer._key_dense), "value": (value, layer._value_dense)}
    for role, (labels, part) in parts.items():
        read = ledger.reads(layer, role, at(labels, -1, ledger, name))
        ledger.cut(layer, part.kernel, 0, read)
        ledger.cut(layer, part.kernel, 1, heads, produces=True)
        ledger.cut(layer, part.bias, 0, heads, produces=True)
        ledger.add_work(part.kernel, positions(labels.shape, len(labels.shape) - 1))
    last = layer._output_dense
    ledger.cut(layer, last.kernel, 0, heads)
    ledger.add_work(last.kernel, positions(shapes[0], len(shapes[0]) - 1))
    ledger.resize(layer, "num_heads", heads)
    if len(last.kernel.shape) != 3:
        made = ledger.fixed(shapes[0][-1] or 0, f"{name}: an output of several axes")
    else:
        made = ledger.own(layer, "out", last.kernel.shape[-1])
        ledger.cut(layer, last.kernel, -1, made, produces=True)
        ledger.cut(layer, last.bias, 0, made, produces=True)
        if layer._output_shape is None:  # as wide as the query
            ledger.tie(made, at(query, -1, ledger, name))
        else:
            ledger.pin(made, f"{name}: an output shape of its own")
    return [
        Labels(shapes[0], len(shapes[0]) - 1, made),
        *(Labels(shape, len(shape) - 1, ledger.fixed(shape[-1] or 0, f"{name}: scores")) for shape in shapes[1:]),
    ]


@follows(*GATES)
def recurrent(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    cell = layer.cell
    gates = cell.kernel.shape[-1] // layer.units
    read = ledger.reads(layer, "in", at(inputs[0], -1, ledger, layer.name))
    hidden = ledger.own(layer, "out", layer.units)
    columns = np.tile(hidden, gates)
    ledger.cut(layer, cell.kernel, 0, read)
    ledger.cut(layer, cell.kernel, 1, columns, produces=True)
    ledger.cut(layer, cell.recurrent_kernel, 0, hidden)
    ledger.cut(layer, cell.recurrent_kernel, 1, columns, produces=True)
    ledger.cut(layer, cell.bias, -1, columns, produces=True)
    ledger.resize(layer, "units", hidden)
    for kernel in (cell.kernel, cell.recurrent_kernel):
        ledger.add_work(kernel, positions(inputs[0].shape, len(inputs[0].shape) - 1))
    for state in inputs[1:]:  # states that are passed in
        ledger.pin(state.units, f"{layer.name}: its states are passed in")
        ledger.pin(hidden, f"{layer.name}: its states are passed in")
    if layer.stateful:
        ledger.pin(hidden, f"{layer.name}: it keeps its state between calls")
    return [Labels(shape, len(shape) - 1, hidden) for shape in shapes]
