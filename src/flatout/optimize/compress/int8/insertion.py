"""Inserts rounding layers into a model, at the points where a runtime that fuses activations would round to int8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatout.optimize.compress.int8.rounding_layers import KERNEL_AXES, rounded_values, rounded_weights
from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.graph import activation_name

SAME_SCALE = (
    "Flatten Reshape Permute RepeatVector Dropout SpatialDropout1D SpatialDropout2D GaussianNoise GaussianDropout "
    "ZeroPadding1D ZeroPadding2D Cropping1D Cropping2D MaxPooling1D MaxPooling2D GlobalMaxPooling1D GlobalMaxPooling2D "
    "InputLayer Identity AveragePooling1D AveragePooling2D UpSampling1D UpSampling2D"
)
"""Layers whose outputs have the scale of their inputs: they pass values on, or choose or average them."""

FUSED = ("relu", "relu6", "linear")
"""Activations that runtimes compute inside the previous layer, on its wide accumulator."""

BOUNDS = {"softmax": (0.0, 255 / 256), "sigmoid": (0.0, 255 / 256), "tanh": (-1.0, 127 / 128)}
"""Ranges that are known in advance, and that LiteRT requires."""


def with_rounding(
    model: Any, *, skip: frozenset[str] = frozenset(), learned: bool = False, norms: Mapping[int, Any] | None = None
) -> graph.Rebuilt:
    """The model rebuilt with rounding layers, except for the layers named in `skip`.

    `learned`: the ranges of values are trained. `norms`: batch norms to compute after a layer, by its identity.
    """
    insertion = _Insertion(graph.wiring(model), skip, learned, norms or {})
    return graph.Rebuilt(model, insertion.make, insertion.call, insertion.enter)


class _Insertion:
    """What `graph.Rebuilt` does with each layer, call and input."""

    def __init__(self, wiring: graph.Wiring, skip: frozenset[str], learned: bool, norms: Mapping[int, Any]) -> None:
        self._wiring, self._skip, self._learned, self._norms = wiring, skip, learned, norms
        self._counts: dict[str, int] = {}

    def make(self, layer: Any, config: dict[str, Any]) -> Any:
        if not _has_kernel(layer) or layer.name in self._skip:
            return graph.remake(layer, config)
        if activation_name(layer) not in FUSED:
            config["activation"] = "linear"  # `call` adds it as a layer of its own
        inner = graph.remake(layer, config)
        norm = self._norms.get(id(layer))
        new_norm = None if norm is None else graph.remake(norm, graph.config_of(norm))
        wrapper = rounded_weights()(inner, new_norm, name=f"{config['name']}_rounded")
        wrapper.trainable = layer.trainable
        if norm is not None and new_norm is not None:
            new_norm.trainable = norm.trainable
        return wrapper

    def call(self, number: int, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        import keras

        step = self._wiring.steps[number]
        kind, name = activation_name(step.operation), self._unique(step.operation.name)
        if _is_silu(step.operation) and step.operation.name not in self._skip:
            return self._silu(arguments[0], name)
        values = layer()(*arguments, **keywords)
        if len(step.outputs) != 1 or "float" not in str(values.dtype) or step.operation.name in self._skip:
            return values
        if _has_kernel(step.operation) and kind not in FUSED:
            values = self._round(values, name)
            if kind in ("silu", "swish"):
                return self._silu(values, name)
            values = keras.layers.Activation(step.operation.activation, name=f"{name}_activation")(values)
            return self._round(values, f"{name}_activation", BOUNDS.get(kind), step)
        if type(step.operation).__name__ in SAME_SCALE.split() or _fused_later(step, self._wiring):
            return values
        return self._round(values, name, BOUNDS.get(kind), step)

    def enter(self, value: Any, name: str) -> Any:
        return self._round(value, name) if "float" in str(value.dtype) else value

    def _round(
        self, value: Any, name: str, bounds: tuple[float, float] | None = None, step: graph.Step | None = None
    ) -> Any:
        answers = bounds is not None and step is not None and step.outputs[0] in self._wiring.outputs
        return rounded_values()(bounds, self._learned, answers=answers, name=f"{name}_values")(value)

    def _silu(self, values: Any, name: str) -> Any:
        """x · sigmoid(x) step by step, because a runtime rounds the sigmoid too."""
        import keras

        gate = keras.layers.Activation("sigmoid", name=f"{name}_sigmoid")(values)
        gate = self._round(gate, f"{name}_sigmoid", BOUNDS["sigmoid"])
        return self._round(keras.layers.Multiply(name=f"{name}_product")([values, gate]), f"{name}_product")

    def _unique(self, name: str) -> str:
        self._counts[name] = self._counts.get(name, 0) + 1
        return name if self._counts[name] == 1 else f"{name}_{self._counts[name]}"


def _has_kernel(layer: Any) -> bool:
    """Whether it is a Keras layer whose kernel can be rounded."""
    return (
        type(layer).__module__.startswith("keras.src.layers.")
        and type(layer).__name__ in KERNEL_AXES
        and not getattr(layer, "quantization_mode", None)
        and not getattr(layer, "lora_enabled", False)
    )


def _fused_later(step: graph.Step, wiring: graph.Wiring) -> bool:
    """Whether the only reader is an activation that the runtime computes before it rounds."""
    reader = wiring.only_reader(step)
    if reader is None or not (_has_kernel(step.operation) or type(step.operation).__name__ == "Add"):
        return False
    is_activation = type(reader.operation).__name__ in ("ReLU", "Activation")
    return is_activation and activation_name(reader.operation) in FUSED and activation_name(step.operation) == "linear"


def _is_silu(layer: Any) -> bool:
    return type(layer).__name__ == "Activation" and activation_name(layer) in ("silu", "swish")
