"""Dense layers and embeddings."""

from __future__ import annotations

from typing import Any

from flatout.optimize.compress.rules import Shape, at, follows, per_element
from flatout.optimize.compress.units import Labels, Ledger, positions


@follows("Dense")
def dense(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = len(shapes[0]) - 1
    taken = ledger.takes(layer, "in", at(inputs[0], axis, ledger, layer.name))
    made = ledger.own(layer, "out", layer.units)
    plain = not getattr(layer, "quantization_mode", None) and not getattr(layer, "lora_enabled", False)
    if plain:
        ledger.cut(layer, layer.kernel, 0, taken)
        ledger.cut(layer, layer.kernel, 1, made, produces=True)
        ledger.cut(layer, layer.bias, 0, made, produces=True)
        ledger.resize(layer, "units", made)
        ledger.multiplied(layer.kernel, positions(shapes[0], axis))
    else:
        ledger.pin(taken, f"{layer.name}: quantized or with LoRA weights")
    if not plain or not per_element(layer.activation):
        ledger.pin(made, f"{layer.name}: its activation looks at all channels")
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
