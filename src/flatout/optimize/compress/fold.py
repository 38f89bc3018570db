"""Folding: what changes no output is taken out of the model. Exact to float rounding, and checked.

- a batch norm right after a convolution or dense layer becomes part of that layer's weights
- layers that do nothing when a model answers (dropout, linear activation, padding by nothing) are left out
- branches that are zero (all weights of a layer are) disappear from the sums they go into
- channels that nobody reads (all weights that take them are zero) are removed

What is folded is meant to be served: without batch norm and dropout it trains differently.
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
    """The same answers from fewer layers. `data` is what the check is made with, random inputs if none is given."""
    wiring = graph.wiring(model)
    pairs = batch_norms(wiring)
    folded = {id(layer): norm for layer, norm in pairs}
    skipped = {id(norm) for _, norm in pairs}
    idle = {step.number for step in wiring.steps if _idle(step, wiring, keep_dropout)}
    silent = _silent(wiring)

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if id(layer) in folded:
            config["use_bias"] = True
        return graph.remake(layer, config)

    def call(number: int, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        step = wiring.steps[number]
        if number in idle or id(step.operation) in skipped:
            return arguments[0]
        if _kind(step.operation) == "Add" and isinstance(arguments[0], list | tuple):
            alive = [value for value, tensor in zip(arguments[0], step.inputs, strict=True) if tensor not in silent]
            if len(alive) == 1 and tuple(alive[0].shape) == step.shapes[0]:
                return alive[0]
            if 1 < len(alive) < len(arguments[0]):
                return layer()(alive, **keywords)
        return layer()(*arguments, **keywords)

    rebuilt = graph.Rebuilt(model, make, call)
    for old in graph.layers(model):
        new = rebuilt.layers.get(id(old))
        if new is None or not getattr(new, "built", True):
            continue  # it stood in a branch that is gone
        if id(old) in folded:
            for variable, value in zip(new.weights, with_norm(old, folded[id(old)]), strict=True):
                variable.assign(value)
        else:
            graph.copy_weights([(old, new)])
    inputs = checks.samples(model, data=data)
    expected = checks.outputs(model, inputs)
    allowed = checks.rounding(model)
    found = [checks.same("folded", expected, checks.outputs(rebuilt.model, inputs), allowed)]
    result, unread = rebuilt.model, 0
    known = follow(result)
    removed = unread_units(known)
    if removed:
        unread = len(removed)
        result = shrink.without(known, removed)
        found.append(checks.same("unread channels", expected, checks.outputs(result, inputs), allowed))
    graph.compile_like(result, model)
    return Compressed(
        result,
        "folded",
        Size(*cost.of(model)),
        Size(*cost.of(result)),
        tuple(found),
        details={"batch norms folded": len(pairs), "idle layers": len(idle), "unread channels": unread},
    )


def batch_norms(wiring: graph.Wiring) -> list[tuple[Any, Any]]:
    """(layer, batch norm) where the norm alone reads what the layer makes, and both are called once."""
    found = []
    for step in wiring.steps:
        layer = step.operation
        if _kind(layer) not in (*_OUT_AXIS, *_DEPTHWISE, *_SEPARABLE) or not wiring.once(layer):
            continue
        reader = wiring.private(step)
        if reader is None or _kind(reader.operation) != "BatchNormalization" or not wiring.once(reader.operation):
            continue
        rank = len(step.shapes[0])
        axis = rank - 1 if _kind(layer) == "Dense" else channel_axis(layer, rank)
        linear = getattr(layer.activation, "__name__", "linear") == "linear"
        plain = not getattr(layer, "quantization_mode", None) and not getattr(layer, "lora_enabled", False)
        if linear and plain and reader.operation.axis % rank == axis:
            found.append((layer, reader.operation))
    return found


def unread_units(known: Channels) -> frozenset[int]:
    """Units whose every reader multiplies them by zero; one of each group stays, for a layer cannot be empty."""
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
    """Weights of the layer that does the work of both, in the layer's order."""
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


def _idle(step: graph.Step, wiring: graph.Wiring, keep_dropout: bool) -> bool:
    """Does nothing when the model answers; the last step stays, so that outputs keep their names."""
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


def _silent(wiring: graph.Wiring) -> set[int]:
    """Tensors that are zero whatever comes in: made by weights that are all zero, and passed on by what keeps zero."""
    silent: set[int] = set()
    for step in wiring.steps:
        layer, kind = step.operation, _kind(step.operation)
        weighted = kind in (*_OUT_AXIS, *_DEPTHWISE)
        if weighted and getattr(layer.activation, "__name__", "") in ("linear", "relu", "tanh", "silu", "gelu"):
            nothing = all(not np.any(variable.numpy()) for variable in layer.weights if variable is not layer.kernel)
            if nothing and (not np.any(layer.kernel.numpy()) or step.inputs[0] in silent):
                silent.update(step.outputs)
        elif kind == "BatchNormalization" and step.inputs[0] in silent:
            scale = layer.gamma.numpy() if layer.scale else np.ones(1)
            beta = layer.beta.numpy() if layer.center else np.zeros(1)
            if not np.any(beta) and not np.any(scale * layer.moving_mean.numpy()):
                silent.update(step.outputs)
        elif kind == "BatchNormalization":
            if layer.scale and layer.center and not np.any(layer.gamma.numpy()) and not np.any(layer.beta.numpy()):
                silent.update(step.outputs)
        elif (kind in ("ReLU", "MaxPooling2D", "AveragePooling2D", *_DROPOUTS) and step.inputs[0] in silent) or (
            kind == "Multiply" and any(tensor in silent for tensor in step.inputs)
        ):
            silent.update(step.outputs)
    return silent


def _kind(operation: Any) -> str:
    return type(operation).__name__ if _is_layer(operation) else ""


def _is_layer(operation: Any) -> bool:
    return type(operation).__module__.startswith("keras.src.layers.")
