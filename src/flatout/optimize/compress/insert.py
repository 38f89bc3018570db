"""Where int8 rounds: the model with rounding layers put in, as a runtime that fuses activations would compute it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatout.optimize.compress import graph
from flatout.optimize.compress.activations import activation_of
from flatout.optimize.compress.fake_quant import WEIGHTED, RoundedValues, RoundedWeights

PASSING = (
    "Flatten Reshape Permute RepeatVector Dropout SpatialDropout1D SpatialDropout2D GaussianNoise GaussianDropout "
    "ZeroPadding1D ZeroPadding2D Cropping1D Cropping2D MaxPooling1D MaxPooling2D GlobalMaxPooling1D GlobalMaxPooling2D "
    "InputLayer Identity AveragePooling1D AveragePooling2D UpSampling1D UpSampling2D"
)
"""Layers that give out what they take in, or a choice or mean of it, on the same scale."""

FUSED = ("relu", "relu6", "linear")
"""Activations that runtimes compute inside the layer before, on its wide accumulator."""

BOUNDS = {"softmax": (0.0, 255 / 256), "sigmoid": (0.0, 255 / 256), "tanh": (-1.0, 127 / 128)}
"""Ranges that are known, and that LiteRT insists on."""


def rounding(
    model: Any, *, skip: frozenset[str] = frozenset(), learned: bool = False, norms: Mapping[int, Any] | None = None
) -> graph.Rebuilt:
    """A model like this one that rounds as int8 does; layers in `skip` stay as they are. `norms` are batch norms to be
    computed after a layer, by the layer's identity."""
    import keras

    wiring = graph.wiring(model)

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if _weighted(layer) and layer.name not in skip:
            if activation_of(layer) not in FUSED:
                config["activation"] = "linear"  # called as a layer of its own, see below
            inner = graph.remake(layer, config)
            norm = (norms or {}).get(id(layer))
            again = None if norm is None else graph.remake(norm, graph.config_of(norm))
            wrapper = RoundedWeights(inner, again, name=f"{config['name']}_rounded")
            wrapper.trainable = layer.trainable
            if norm is not None and again is not None:
                again.trainable = norm.trainable
            return wrapper
        return graph.remake(layer, config)

    def after(value: Any, name: str, bounds: tuple[float, float] | None = None, step: graph.Step | None = None) -> Any:
        answers = bounds is not None and step is not None and step.outputs[0] in wiring.outputs
        return RoundedValues(bounds, learned, answers=answers, name=f"{name}_values")(value)

    counts: dict[str, int] = {}

    def unique(name: str) -> str:
        counts[name] = counts.get(name, 0) + 1
        return name if counts[name] == 1 else f"{name}_{counts[name]}"

    def call(number: int, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        step = wiring.steps[number]
        kind, name = activation_of(step.operation), unique(step.operation.name)
        if _is_silu(step.operation) and step.operation.name not in skip:
            return _silu(arguments[0], name, after)
        values = layer()(*arguments, **keywords)
        if len(step.outputs) != 1 or "float" not in str(values.dtype) or step.operation.name in skip:
            return values
        if _weighted(step.operation) and kind not in FUSED:
            values = after(values, name)
            if kind in ("silu", "swish"):
                return _silu(values, name, after)
            values = keras.layers.Activation(step.operation.activation, name=f"{name}_activation")(values)
            return after(values, f"{name}_activation", BOUNDS.get(kind), step)
        if type(step.operation).__name__ in PASSING.split() or _fused_later(step, wiring):
            return values
        return after(values, name, BOUNDS.get(kind), step)

    def entering(value: Any, name: str) -> Any:
        return after(value, name) if "float" in str(value.dtype) else value

    return graph.Rebuilt(model, make, call, entering)


def _weighted(layer: Any) -> bool:
    return (
        type(layer).__module__.startswith("keras.src.layers.")
        and type(layer).__name__ in WEIGHTED
        and not getattr(layer, "quantization_mode", None)
        and not getattr(layer, "lora_enabled", False)
    )


def _fused_later(step: graph.Step, wiring: graph.Wiring) -> bool:
    """The only reader is an activation that is computed before anything is rounded."""
    reader = wiring.private(step)
    if reader is None or not (_weighted(step.operation) or type(step.operation).__name__ == "Add"):
        return False
    is_activation = type(reader.operation).__name__ in ("ReLU", "Activation")
    return is_activation and activation_of(reader.operation) in FUSED and activation_of(step.operation) == "linear"


def _is_silu(layer: Any) -> bool:
    return type(layer).__name__ == "Activation" and activation_of(layer) in ("silu", "swish")


def _silu(values: Any, name: str, after: Any) -> Any:
    """x · sigmoid(x) step by step: a runtime rounds the sigmoid too."""
    import keras

    gate = keras.layers.Activation("sigmoid", name=f"{name}_sigmoid")(values)
    gate = after(gate, f"{name}_sigmoid", BOUNDS["sigmoid"])
    return after(keras.layers.Multiply(name=f"{name}_product")([values, gate]), f"{name}_product")
