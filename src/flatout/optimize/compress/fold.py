"""Folding: removes what does not change the outputs. Exact up to float rounding, and checked.

- a batch norm directly after a convolution or dense layer becomes part of that layer's weights
- layers without effect at inference (dropout, linear activation, padding by nothing) are removed
- branches that are zero (all weights of a layer are) are removed from the sums they go into
- channels that are not read (all weights that read them are zero) are removed

A folded model is meant for serving: without batch norm and dropout it trains differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.optimize.compress import checks
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import cost, graph, shrink
from flatout.optimize.compress.structure.channels import Channels, follow
from flatout.optimize.compress.structure.rules import channel_axis

_OUT_AXIS = {
    **{f"Conv{rank}D": -1 for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": -2 for rank in (1, 2, 3)},
    "Dense": -1,
}
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")
_SEPARABLE = ("SeparableConv1D", "SeparableConv2D")
_DROPOUTS = (
    *("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise"),
    *(f"SpatialDropout{rank}D" for rank in (1, 2, 3)),
)


def fold(model: Any, *, keep_dropout: bool = False, data: Any = None) -> Compressed:
    """The same answers from fewer layers. `data`: inputs for the check; random ones if none are given."""
    wiring = graph.wiring(model)
    pairs = batch_norms(wiring)
    folded = {id(layer): norm for layer, norm in pairs}
    skipped = {id(norm) for _, norm in pairs}
    without_effect = {step.number for step in wiring.steps if _has_no_effect(step, wiring, keep_dropout)}
    zeros = _zero_tensors(wiring)

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if id(layer) in folded:
            config["use_bias"] = True
        return graph.remake(layer, config)

    def call(number: int, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        step = wiring.steps[number]
        if number in without_effect or id(step.operation) in skipped:
            return arguments[0]
        if _kind(step.operation) == "Add" and isinstance(arguments[0], list | tuple):
            alive = [value for value, tensor in zip(arguments[0], step.inputs, strict=True) if tensor not in zeros]
            if len(alive) == 1 and tuple(alive[0].shape) == step.shapes[0]:
                return alive[0]
            if 1 < len(alive) < len(arguments[0]):
                return layer()(alive, **keywords)
        return layer()(*arguments, **keywords)

    rebuilt = graph.Rebuilt(model, make, call)
    for old in graph.layers(model):
        new = rebuilt.layers.get(id(old))
        if new is None or not getattr(new, "built", True):
            continue  # its branch was removed
        if id(old) in folded:
            for variable, value in zip(new.weights, with_norm(old, folded[id(old)]), strict=True):
                variable.assign(value)
        else:
            graph.copy_weights([(old, new)])
    inputs = checks.samples(model, data=data)
    expected = checks.outputs(model, inputs)
    allowed = checks.rounding_tolerance(model)
    found = [checks.expect_equal("folded", expected, checks.outputs(rebuilt.model, inputs), allowed)]
    result, unread = rebuilt.model, 0
    known = follow(result)
    removed = unread_units(known)
    if removed:
        unread = len(removed)
        result = shrink.remove_units(known, removed)
        found.append(checks.expect_equal("unread channels", expected, checks.outputs(result, inputs), allowed))
    graph.compile_like(result, model)
    return Compressed(
        result,
        "folded",
        Size(*cost.of(model)),
        Size(*cost.of(result)),
        tuple(found),
        details={"batch norms folded": len(pairs), "idle layers": len(without_effect), "unread channels": unread},
    )


def batch_norms(wiring: graph.Wiring) -> list[tuple[Any, Any]]:
    """(layer, batch norm) where only the norm reads the layer's output, and both are called once."""
    found = []
    for step in wiring.steps:
        layer = step.operation
        if _kind(layer) not in (*_OUT_AXIS, *_DEPTHWISE, *_SEPARABLE) or not wiring.called_once(layer):
            continue
        reader = wiring.only_reader(step)
        if (
            reader is None
            or _kind(reader.operation) != "BatchNormalization"
            or not wiring.called_once(reader.operation)
        ):
            continue
        rank = len(step.shapes[0])
        axis = rank - 1 if _kind(layer) == "Dense" else channel_axis(layer, rank)
        linear = getattr(layer.activation, "__name__", "linear") == "linear"
        plain = not getattr(layer, "quantization_mode", None) and not getattr(layer, "lora_enabled", False)
        if linear and plain and reader.operation.axis % rank == axis:
            found.append((layer, reader.operation))
    return found


def unread_units(known: Channels) -> frozenset[int]:
    """Units that every reader multiplies by zero. One of each group stays, because a layer cannot be empty."""
    read: dict[int, bool] = {}
    for cut in known.ledger.cuts.values():
        if cut.produces or len(cut.variable.shape) < 2:
            continue
        value = np.asarray(cut.variable.numpy())
        used = np.abs(value).max(axis=tuple(axis for axis in range(value.ndim) if axis != cut.axis)) > 0
        for root, is_used in zip(known.ledger.roots(cut.units), used, strict=True):
            read[int(root)] = read.get(int(root), False) or bool(is_used)
    removed: set[int] = set()
    for group in known.groups:
        unread = [unit for unit in group.units if read.get(unit) is False]
        removed.update(unread[: len(group.units) - 1])
    return frozenset(removed)


def with_norm(layer: Any, norm: Any) -> list[Any]:
    """The weights of a layer that computes both, in the layer's order."""
    variance, mean = norm.moving_variance.numpy().astype(np.float64), norm.moving_mean.numpy().astype(np.float64)
    scale = (norm.gamma.numpy() if norm.scale else 1.0) / np.sqrt(variance + norm.epsilon)
    shift = (norm.beta.numpy() if norm.center else 0.0) - mean * scale
    bias = layer.bias.numpy() * scale + shift if layer.use_bias else shift
    kind = _kind(layer)
    if kind in _DEPTHWISE:
        kernel = layer.kernel.numpy()
        return [kernel * scale.reshape(kernel.shape[-2:]), bias]
    if kind in _SEPARABLE:
        return [layer.depthwise_kernel.numpy(), layer.pointwise_kernel.numpy() * scale, bias]
    kernel = layer.kernel.numpy()
    shape = [1] * kernel.ndim
    shape[_OUT_AXIS[kind]] = len(scale)
    return [kernel * scale.reshape(shape), bias]


def _has_no_effect(step: graph.Step, wiring: graph.Wiring, keep_dropout: bool) -> bool:
    """Whether it has no effect at inference. The last step stays, so that outputs keep their names."""
    layer, kind = step.operation, _kind(step.operation)
    if len(step.inputs) != 1 or len(step.outputs) != 1:
        return False
    maker = wiring.maker(step.inputs[0])
    if step.outputs[0] in wiring.outputs or maker is None:
        return False
    same_shape = step.shapes[0] == maker.shapes[maker.outputs.index(step.inputs[0])]
    if kind in _DROPOUTS:
        return not keep_dropout
    if kind == "Activation":
        return getattr(layer.activation, "__name__", "") == "linear"
    if kind in ("Flatten", "Reshape"):
        return same_shape and None not in step.shapes[0][1:]
    if kind.startswith(("ZeroPadding", "Cropping")):
        return same_shape and not np.any(layer.padding if kind.startswith("Zero") else layer.cropping)
    if kind == "Rescaling":
        return bool(np.all(layer.scale == 1) and np.all(layer.offset == 0))
    return kind == "Identity" and _is_layer(layer)


def _zero_tensors(wiring: graph.Wiring) -> set[int]:
    """Tensors that are always zero: computed from weights that are all zero, or from zeros by what keeps zero."""
    zeros: set[int] = set()
    for step in wiring.steps:
        layer, kind = step.operation, _kind(step.operation)
        weighted = kind in (*_OUT_AXIS, *_DEPTHWISE)
        if weighted and getattr(layer.activation, "__name__", "") in ("linear", "relu", "tanh", "silu", "gelu"):
            no_bias = all(not np.any(variable.numpy()) for variable in layer.weights if variable is not layer.kernel)
            if no_bias and (not np.any(layer.kernel.numpy()) or step.inputs[0] in zeros):
                zeros.update(step.outputs)
        elif kind == "BatchNormalization" and step.inputs[0] in zeros:
            scale = layer.gamma.numpy() if layer.scale else np.ones(1)
            beta = layer.beta.numpy() if layer.center else np.zeros(1)
            if not np.any(beta) and not np.any(scale * layer.moving_mean.numpy()):
                zeros.update(step.outputs)
        elif kind == "BatchNormalization":
            if layer.scale and layer.center and not np.any(layer.gamma.numpy()) and not np.any(layer.beta.numpy()):
                zeros.update(step.outputs)
        elif (kind in ("ReLU", "MaxPooling2D", "AveragePooling2D", *_DROPOUTS) and step.inputs[0] in zeros) or (
            kind == "Multiply" and any(tensor in zeros for tensor in step.inputs)
        ):
            zeros.update(step.outputs)
    return zeros


def _kind(operation: Any) -> str:
    return type(operation).__name__ if _is_layer(operation) else ""


def _is_layer(operation: Any) -> bool:
    return type(operation).__module__.startswith("keras.src.layers.")
