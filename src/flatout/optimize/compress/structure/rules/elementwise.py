"""Layers and `keras.ops` that treat every channel by itself: activations, dropout, pooling, padding, upsampling."""

from __future__ import annotations

from typing import Any

from flatout.optimize.compress.structure.rules import Shape, at, channel_axis, follows, per_element
from flatout.optimize.compress.structure.units import Labels, Ledger

_UNARY_OPS = (
    "Relu Relu6 Sigmoid Silu Swish HardSigmoid HardSilu HardSwish Tanh HardTanh Gelu Elu Selu Celu LeakyRelu "
    "Softplus Softsign Mish Absolute Negative Square Sqrt Exp Erf Clip Cast StopGradient"
)


@follows(
    *("ReLU", "LeakyReLU", "ELU", "Identity", "Masking", "ActivityRegularization"),
    *("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D"),
    *("SpatialDropout2D", "SpatialDropout3D"),
)
def unchanged(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    return [inputs[0].moved(shapes[0], inputs[0].axis)]


@follows("Activation")
def activation(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    if not per_element(layer.activation):
        ledger.pin(inputs[0].units, f"{layer.name}: its activation depends on all channels")
    return unchanged(layer, inputs, shapes, ledger)


@follows("Softmax")
def softmax(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    ledger.pin(inputs[0].units, f"{layer.name}: a softmax depends on all channels")
    return unchanged(layer, inputs, shapes, ledger)


@follows("Rescaling")
def rescaling(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    if not all(isinstance(value, int | float) for value in (layer.scale, layer.offset)):
        ledger.pin(inputs[0].units, f"{layer.name}: a scale per channel")
    return unchanged(layer, inputs, shapes, ledger)


@follows("PReLU")
def prelu(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = inputs[0].axis
    if layer.alpha.shape[axis - 1] == len(inputs[0].units):  # 1 if the slope is shared by all channels
        ledger.cut(layer, layer.alpha, axis - 1, ledger.reads(layer, "in", inputs[0].units))
    return unchanged(layer, inputs, shapes, ledger)


@follows(
    *(f"{kind}Pooling{rank}D" for kind in ("Max", "Average", "AdaptiveMax", "AdaptiveAverage") for rank in (1, 2, 3)),
    *(f"{kind}{rank}D" for kind in ("ZeroPadding", "Cropping", "UpSampling") for rank in (1, 2, 3)),
)
def spatial(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    axis = channel_axis(layer, len(shapes[0]))
    return [Labels(shapes[0], axis, at(inputs[0], axis, ledger, layer.name))]


@follows(*(f"Global{kind}Pooling{rank}D" for kind in ("Max", "Average") for rank in (1, 2, 3)))
def global_pooling(layer: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    units = at(inputs[0], channel_axis(layer, len(inputs[0].shape)), ledger, layer.name)
    return [Labels(shapes[0], channel_axis(layer, len(shapes[0])) if layer.keepdims else 1, units)]


@follows(ops=tuple(_UNARY_OPS.split()))
def unary(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    return [inputs[0].moved(shapes[0], inputs[0].axis)]


@follows(ops=("Mean", "Max", "Min", "Sum"))
def reduction(operation: Any, inputs: list[Labels], shapes: list[Shape], ledger: Ledger) -> list[Labels]:
    """A reduction over space or time. One over channels pins them: its result would change with their number."""
    labels, rank = inputs[0], len(inputs[0].shape)
    axes = operation.axis
    listed = list(range(rank)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    gone = {axis % rank for axis in listed}
    if labels.axis in gone:
        ledger.pin(labels.units, f"{operation.name}: it reduces over the channels")
        return [Labels(shapes[0], len(shapes[0]) - 1, ledger.fixed((shapes[0] or (0,))[-1] or 0, operation.name))]
    new_axis = labels.axis if operation.keepdims else labels.axis - sum(axis < labels.axis for axis in gone)
    return [labels.moved(shapes[0], new_axis)]
