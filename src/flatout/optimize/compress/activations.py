"""What a layer applies to its values, by name."""

from __future__ import annotations

from typing import Any


def activation_of(layer: Any) -> str:
    """The name of the function that a layer applies; "linear" where it applies none."""
    kind = type(layer).__name__
    if kind == "ReLU":
        plain = not layer.negative_slope and not layer.threshold and layer.max_value in (None, 6)
        return "relu" if plain else "leaky_relu"
    if kind == "Softmax":
        return "softmax"
    activation = getattr(layer, "activation", None)
    return getattr(activation, "__name__", "custom") if activation is not None else "linear"
