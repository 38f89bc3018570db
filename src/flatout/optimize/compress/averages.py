"""Averages the weights over the last steps of a training, instead of taking those of the very last step.

With a constant learning rate the last step is partly chance: a network that is trained further gains or loses a point
of accuracy from one epoch to the next. The mean of the weights of the last steps is steadier. If the rate falls to
zero, the last steps are nearly equal, and so is their mean.

A model that was good before further training also gains by keeping a share of its old weights: both lie in one valley
of the loss, and a point between them depends less on chance than either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flatout.optimize.compress import checks
from flatout.optimize.compress.structure import graph

SHARE = 3.0
"""The mean reaches back over 1/SHARE of the steps so far, so that it works for short trainings too…"""

LONGEST = 0.98
"""…and over fifty steps at most, because the statistics of batch norms belong to recent weights."""

ALIKE = 0.07
"""How far answers may move, as a share of their spread, when weights move back towards the start of the training. From
a good start they move by 0.01 to 0.06; from a model that pruning or rounding had damaged by 0.1 and more, and moving
back costs accuracy then."""


@contextmanager
def averaged(model: Any) -> Iterator[None]:
    """Within the context, the optimizer of a compiled model keeps averages, and `fit` ends with them.

    The user's own training loop, or an optimizer that is compiled meanwhile, is not affected. Weights with a constraint
    (masks, clusters) are not averaged: their mean may violate it.
    """
    optimizer = _keras_optimizer(getattr(model, "optimizer", None))
    weights = list(model.trainable_variables)
    if optimizer is None or any(weight.constraint is not None for weight in weights):
        yield
        return
    kind = type(optimizer)
    averages = optimizer.add_optimizer_variables(weights, "average")
    pairs = [(weight, average) for weight, average in zip(weights, averages, strict=True) if average is not None]

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        kind.apply(self, grads, trainable_variables)
        _update_averages(self, pairs)

    def finalize_variable_values(self: Any, var_list: Any) -> None:
        kind.finalize_variable_values(self, var_list)
        if int(self.iterations) > 0:
            for weight, average in pairs:
                weight.assign(average)

    # With the original's name, so that a checkpoint written meanwhile can be loaded.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    methods = {"apply": apply, "finalize_variable_values": finalize_variable_values}
    optimizer.__class__ = type(kind.__name__, (kind,), {**names, **methods})
    try:
        yield
    finally:
        optimizer.__class__ = kind


def blend_with_start(model: Any, start: list[Any], keep: float, inputs: list[Any], batch_size: int) -> None:
    """Move the weights by the share `keep` towards the `start` (from `current_weights`), if the model still answers
    alike on `inputs`; otherwise leave them."""
    variables = _averageable(model)
    if keep <= 0 or any(variable.constraint is not None for variable in variables):
        return
    end = current_weights(model)
    trained = checks.outputs_by_batch(model, inputs, batch_size)
    for variable, first, last in zip(variables, start, end, strict=True):
        variable.assign(
            (last + keep * (first - last)).astype(last.dtype)
        )  # weights that were not trained keep every bit
    if not checks.distance(trained, checks.outputs_by_batch(model, inputs, batch_size)) <= ALIKE:
        for variable, last in zip(variables, end, strict=True):
            variable.assign(last)


def current_weights(model: Any) -> list[Any]:
    """Copies of the weights and statistics of a model."""
    return [np.array(variable.numpy()) for variable in _averageable(model)]


def _averageable(model: Any) -> list[Any]:
    """Weights that can be averaged: no counters, and no rounding ranges, which belong to the final values."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    ranges = {id(v) for layer in graph.layers(model) if is_rounded_values(layer) for v in layer.weights}
    return [v for v in model.weights if "float" in str(v.dtype) and id(v) not in ranges]


def _keras_optimizer(optimizer: Any) -> Any:
    """The optimizer that updates the weights; None if it is not one of Keras' or already keeps averages."""
    import keras

    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return inner if isinstance(inner, keras.optimizers.Optimizer) and not inner.use_ema else None


def _update_averages(optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
    from keras import ops

    before = ops.maximum(ops.cast(optimizer.iterations, "float32") - 1.0, 0.0)  # steps before this one
    momentum = ops.minimum(LONGEST, before / (before + SHARE))
    for weight, average in pairs:
        average.assign(weight + ops.cast(momentum, average.dtype) * (average - weight))
