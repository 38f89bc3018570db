"""Trains a rounded model with separate batch norms, which are folded only afterwards.

Without batch norms training is unstable, and a learning rate that suited the float model is too large. The scale of a
channel does not change how its weights are rounded, so a kernel can be rounded before the norm. The folded model is
compared with the trained one, with rounding switched off: they must agree as in any exact transformation.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from flatout.optimize.compress import checks
from flatout.optimize.compress.fold import batch_norms, with_norm
from flatout.optimize.compress.structure import graph


def unfolded(model: Any, folded: Any, rounded: graph.Rebuilt, **how: Any) -> graph.Rebuilt:
    """The rounded form of the folded model with the batch norms of the original, ready to be trained.

    `how`: the arguments of `with_rounding`. A layer that was changed in another way, or whose name is not unique, stays
    folded.
    """
    from flatout.optimize.compress.int8.insertion import with_rounding

    pairs = _pairs(model, folded)
    learner = with_rounding(folded, norms={key: norm for key, (_, norm) in pairs.items()}, **how)
    for old in graph.layers(folded):
        fresh, known = learner.layers.get(id(old)), rounded.layers.get(id(old))
        if fresh is None:
            continue  # it was replaced by layers without weights
        if id(old) in pairs and _has_norm(fresh):
            layer, norm = pairs[id(old)]
            fresh.layer.kernel.assign(layer.kernel.numpy())
            fresh.layer.bias.assign(layer.bias.numpy() if layer.use_bias else 0.0 * fresh.layer.bias.numpy())
            graph.copy_weights([(norm, fresh.norm)])
        else:
            graph.copy_weights([(known, fresh)])
    _copy_ranges(rounded.model, learner.model)
    return learner


def fold_again(folded: Any, learner: graph.Rebuilt, rounded: graph.Rebuilt) -> None:
    """Fold the trained weights into the rounded model without batch norms."""
    for old in graph.layers(folded):
        source, target = learner.layers.get(id(old)), rounded.layers.get(id(old))
        if source is None or target is None:
            continue
        if _has_norm(source):
            for variable, value in zip(target.layer.weights, with_norm(source.layer, source.norm), strict=True):
                variable.assign(value)
        else:
            graph.copy_weights([(source, target)])
    _copy_ranges(learner.model, rounded.model)


def expect_same_without_rounding(name: str, one: Any, other: Any, inputs: list[Any]) -> checks.Check:
    """Compare the answers of two models with rounding switched off."""
    some = [array[:8] for array in inputs]
    for model in (one, other):
        set_rounding(model, False)
    try:
        return checks.expect_equal(
            name, checks.outputs(one, some), checks.outputs(other, some), checks.rounding_tolerance(one)
        )
    finally:
        for model in (one, other):
            set_rounding(model, True)


def set_rounding(model: Any, on: bool) -> None:
    """Switch rounding on or off."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    for layer in graph.layers(model):
        if is_rounded_values(layer) or is_rounded_weights(layer):
            layer.enabled = on


def _has_norm(layer: Any) -> bool:
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_weights

    return is_rounded_weights(layer) and layer.norm is not None


def _pairs(model: Any, folded: Any) -> dict[int, tuple[Any, Any]]:
    """Layer and batch norm of the original, by the identity of the folded layer that computes both."""
    count = Counter(layer.name for layer in graph.layers(model))
    folded_layers = {layer.name: layer for layer in graph.layers(folded)}
    pairs = {}
    for layer, norm in batch_norms(graph.wiring(model)):
        merged = folded_layers.get(layer.name)
        if merged is None or count[layer.name] > 1 or not hasattr(layer, "kernel"):
            continue
        if type(merged) is type(layer) and tuple(merged.kernel.shape) == tuple(layer.kernel.shape):
            pairs[id(merged)] = (layer, norm)
    return pairs


def _copy_ranges(source: Any, target: Any) -> None:
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    rounders = [[layer for layer in graph.layers(model) if is_rounded_values(layer)] for model in (source, target)]
    graph.copy_weights(list(zip(*rounders, strict=True)))
