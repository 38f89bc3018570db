"""Attention: whole heads are the units inside; what goes in and comes out is followed like in a dense layer."""

from __future__ import annotations

from typing import Any

from flatout.optimize.compress.rules import Shape, at, follows
from flatout.optimize.compress.units import Labels, Ledger, positions


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
        taken = ledger.takes(layer, role, at(labels, -1, ledger, name))
        ledger.cut(layer, part.kernel, 0, taken)
        ledger.cut(layer, part.kernel, 1, heads, produces=True)
        ledger.cut(layer, part.bias, 0, heads, produces=True)
        ledger.multiplied(part.kernel, positions(labels.shape, len(labels.shape) - 1))
    last = layer._output_dense
    ledger.cut(layer, last.kernel, 0, heads)
    ledger.multiplied(last.kernel, positions(shapes[0], len(shapes[0]) - 1))
    ledger.resize(layer, "num_heads", heads)
    if len(last.kernel.shape) != 3:
        made = ledger.fixed(shapes[0][-1] or 0, f"{name}: an output of several axes")
    else:
        made = ledger.own(layer, "out", last.kernel.shape[-1])
        ledger.cut(layer, last.kernel, -1, made, produces=True)
        ledger.cut(layer, last.bias, 0, made, produces=True)
        if layer._output_shape is None:  # as wide as the query, whatever that is
            ledger.tie(made, at(query, -1, ledger, name))
        else:
            ledger.pin(made, f"{name}: an output shape of its own")
    return [
        Labels(shapes[0], len(shapes[0]) - 1, made),
        *(Labels(shape, len(shape) - 1, ledger.fixed(shape[-1] or 0, f"{name}: scores")) for shape in shapes[1:]),
    ]
