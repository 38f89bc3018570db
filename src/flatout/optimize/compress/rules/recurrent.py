"""Recurrent layers: a hidden unit is a column of each gate and a row of the recurrent kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress.rules import Shape, at, follows
from flatout.optimize.compress.units import Labels, Ledger, positions

GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}


@follows(*GATES)
def recurrent(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    cell = layer.cell
    gates = cell.kernel.shape[-1] // layer.units
    taken = ledger.takes(layer, "in", at(inputs[0], -1, ledger, layer.name))
    hidden = ledger.own(layer, "out", layer.units)
    columns = np.tile(hidden, gates)
    ledger.cut(layer, cell.kernel, 0, taken)
    ledger.cut(layer, cell.kernel, 1, columns, produces=True)
    ledger.cut(layer, cell.recurrent_kernel, 0, hidden)
    ledger.cut(layer, cell.recurrent_kernel, 1, columns, produces=True)
    ledger.cut(layer, cell.bias, -1, columns, produces=True)
    ledger.resize(layer, "units", hidden)
    for kernel in (cell.kernel, cell.recurrent_kernel):
        ledger.multiplied(kernel, positions(inputs[0].shape, len(inputs[0].shape) - 1))
    for state in inputs[1:]:  # states that are handed in
        ledger.pin(state.units, f"{layer.name}: states from outside")
        ledger.pin(hidden, f"{layer.name}: states from outside")
    if layer.stateful:
        ledger.pin(hidden, f"{layer.name}: it keeps its state between calls")
    return [Labels(shape, len(shape) - 1, hidden) for shape in shapes]
