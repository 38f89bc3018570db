"""The rounded model made of Keras' own layers and operations alone, so that it loads where flatout is not installed.

Kernels hold the rounded weights. Where values are rounded, a nested model stands that does it in operations of Keras:
to the levels that the int8 file has, between the bounds that were found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flatout.optimize.compress.structure import graph

LEVELS = 255


def plain_form(model: Any) -> Any:
    """The model for inference. It answers as the rounded one does; it can be saved, and is not meant to be trained."""
    return graph.compile_like(served(model, lambda layer, config: _rounding(layer, config["name"])), model)


def served(model: Any, of_values: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """The model with rounded weights in plain layers. `of_values`: the layer in the place of one that rounds values."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if is_rounded_weights(layer):
            return graph.remake(layer.layer, dict(layer.layer.get_config()))
        return of_values(layer, config) if is_rounded_values(layer) else graph.remake(layer, config)

    rebuilt = graph.Rebuilt(model, make)
    for old in graph.layers(model):
        new = rebuilt.layers[id(old)]
        if is_rounded_weights(old):
            for variable, value in zip(new.weights, old.served(), strict=True):
                variable.assign(value)
        elif not is_rounded_values(old):
            graph.copy_weights([(old, new)])
    return rebuilt.model


def save_plainly(model: Any) -> Any:
    """Let `model.save(path)` write the plain form: a file of the rounding layers would load nowhere else."""

    def save(path: Any, *arguments: Any, **keywords: Any) -> Any:
        return plain_form(model).save(path, *arguments, **keywords)

    object.__setattr__(model, "save", save)
    return model


def _rounding(layer: Any, name: str) -> Any:
    """A model of one input that rounds it to 256 levels between the bounds; zero is one of them (`round_values`)."""
    import keras
    from keras import ops

    low, high = layer.range()
    step = np.float32((high - low) / LEVELS)
    zero = np.round(np.float32(-low) / step)
    first, last = (float(value) for value in (-zero * step, (np.float32(LEVELS) - zero) * step))
    values = keras.Input(batch_shape=layer.input.shape, dtype=layer.input.dtype)
    inside = ops.clip(ops.cast(values, "float32"), first, last)
    rounded = ops.round((inside - first) / float(step)) * float(step) + first
    return keras.Model(values, ops.cast(rounded, layer.input.dtype), name=name)
