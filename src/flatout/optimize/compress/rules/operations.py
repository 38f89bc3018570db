"""Operations of `keras.ops` that stand in a functional model without being layers."""

from __future__ import annotations

from typing import Any

from flatout.optimize.compress.rules import Shape, follows
from flatout.optimize.compress.units import Labels, Ledger

_UNARY = [
    "Relu",
    "Relu6",
    "Sigmoid",
    "Silu",
    "Swish",
    "HardSigmoid",
    "HardSilu",
    "HardSwish",
    "Tanh",
    "HardTanh",
    "Gelu",
    "Elu",
    "Selu",
    "Celu",
    "LeakyRelu",
    "Softplus",
    "Softsign",
    "Mish",
    "Absolute",
    "Negative",
    "Square",
    "Sqrt",
    "Exp",
    "Erf",
    "Clip",
    "Cast",
    "StopGradient",
]


@follows(ops=tuple(_UNARY))
def unary(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    return [inputs[0].moved(shapes[0], inputs[0].axis)]


@follows(ops=("Mean", "Max", "Min", "Sum"))
def reduction(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    """Over space or time; over channels, a mean would change with their number."""
    labels, rank = inputs[0], len(inputs[0].shape)
    axes = operation.axis
    listed = list(range(rank)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    gone = {axis % rank for axis in listed}
    if labels.axis in gone:
        ledger.pin(labels.units, f"{operation.name}: it runs over the channels")
        return [Labels(shapes[0], len(shapes[0]) - 1, ledger.fixed((shapes[0] or (0,))[-1] or 0, operation.name))]
    place = labels.axis if operation.keepdims else labels.axis - sum(axis < labels.axis for axis in gone)
    return [labels.moved(shapes[0], place)]
