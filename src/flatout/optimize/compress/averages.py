"""Weights averaged over the last steps of a training, in the place of those of its very last step.

At a learning rate that does not fall the last step decides by chance: a net that is trained on gains or loses a point
from one epoch to the next. The mean of the weights of the last steps does not jump about. Where the rate falls to zero
the last steps are alike, and so is their mean.

A model that was good before it was trained on gains by keeping a share of what it was, too: both weights lie in one
valley, and a point between them is less of an accident than either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flatout.optimize.compress import checks
from flatout.optimize.compress.structure import graph

SHARE = 3.0
"""The mean reaches back over one part of so many of the steps that were taken, so that a short training counts, too…"""

LONGEST = 0.98
"""…and over fifty steps at most: statistics of batch norms belong to the weights of that time."""

ALIKE = 0.07
"""How far answers may move, as a share of their spread, by a step back to where a training began. In trainings that set
out from a good model they move by 0.01 to 0.06; from one that pruning or rounding had damaged, by 0.1 and more, and the
way back costs accuracy then."""


@contextmanager
def averaged(model: Any) -> Iterator[None]:
    """While it lasts, the optimizer of a compiled model keeps averages, and `fit` ends with them.

    A loop of the user's own, or an optimizer that is compiled meanwhile, knows nothing of it. Weights under a
    constraint (masks, clusters) are left as they are: their mean need not keep it.
    """
    optimizer = _plain(getattr(model, "optimizer", None))
    weights = list(model.trainable_variables)
    if optimizer is None or any(weight.constraint is not None for weight in weights):
        yield
        return
    kind = type(optimizer)
    averages = optimizer.add_optimizer_variables(weights, "average")
    pairs = [(weight, average) for weight, average in zip(weights, averages, strict=True) if average is not None]

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        kind.apply(self, grads, trainable_variables)
        _follow(self, pairs)

    def finalize_variable_values(self: Any, var_list: Any) -> None:
        kind.finalize_variable_values(self, var_list)
        if int(self.iterations) > 0:
            for weight, average in pairs:
                weight.assign(average)

    # Known by its own name, so that a checkpoint that is written meanwhile can be loaded.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    methods = {"apply": apply, "finalize_variable_values": finalize_variable_values}
    optimizer.__class__ = type(kind.__name__, (kind,), {**names, **methods})
    try:
        yield
    finally:
        optimizer.__class__ = kind


def between(model: Any, start: list[Any], keep: float, inputs: list[Any], batch_size: int) -> None:
    """Weights that keep this share of what they were at the `start` (as `settled` gave it), if the model answers alike
    on `inputs` then; else they stay as they are."""
    variables = _mixable(model)
    if keep <= 0 or any(variable.constraint is not None for variable in variables):
        return
    end = settled(model)
    trained = checks.outputs_by_batch(model, inputs, batch_size)
    for variable, first, last in zip(variables, start, end, strict=True):
        variable.assign((last + keep * (first - last)).astype(last.dtype))  # what was not trained stays bit by bit
    if not checks.apart(trained, checks.outputs_by_batch(model, inputs, batch_size)) <= ALIKE:
        for variable, last in zip(variables, end, strict=True):
            variable.assign(last)


def settled(model: Any) -> list[Any]:
    """The weights and statistics of a model as they are now."""
    return [np.array(variable.numpy()) for variable in _mixable(model)]


def _mixable(model: Any) -> list[Any]:
    """What has a mean: no counters, and not the ranges of rounding, which belong to the values of the end."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    ranges = {id(v) for layer in graph.layers(model) if is_rounded_values(layer) for v in layer.weights}
    return [v for v in model.weights if "float" in str(v.dtype) and id(v) not in ranges]


def _plain(optimizer: Any) -> Any:
    """The optimizer that changes the weights; None where it is not one of Keras', or keeps averages by itself."""
    import keras

    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return inner if isinstance(inner, keras.optimizers.Optimizer) and not inner.use_ema else None


def _follow(optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
    from keras import ops

    before = ops.maximum(ops.cast(optimizer.iterations, "float32") - 1.0, 0.0)  # the steps before this one
    momentum = ops.minimum(LONGEST, before / (before + SHARE))
    for weight, average in pairs:
        average.assign(weight + ops.cast(momentum, average.dtype) * (average - weight))
