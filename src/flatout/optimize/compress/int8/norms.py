"""A rounded model as it is trained: with its batch norms at work, which are folded only afterwards.

A folded model has lost what keeps its training steady, and a rate that suited the float model is too large for it. The
scale of a channel does not matter to how its weights are rounded, so that a kernel may as well be rounded before the
norm. What was folded for good is compared with what was trained, without rounding: they agree as exact things do.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from flatout.optimize.compress import checks
from flatout.optimize.compress.fold import batch_norms, with_norm
from flatout.optimize.compress.structure import graph


def unfolded(model: Any, folded: Any, rounded: graph.Rebuilt, **how: Any) -> graph.Rebuilt:
    """The rounded form of the folded model with the batch norms of the original in their places, ready to be trained;
    `how` is what `rounding` was told. A layer that was changed otherwise, or whose name is not its own, stays folded.
    """
    from flatout.optimize.compress.int8.insertion import with_rounding

    pairs = _pairs(model, folded)
    learner = with_rounding(folded, norms={place: norm for place, (_, norm) in pairs.items()}, **how)
    for old in graph.layers(folded):
        fresh, known = learner.layers.get(id(old)), rounded.layers.get(id(old))
        if fresh is None:
            continue  # it is computed in parts that have no weights
        if id(old) in pairs and _normed(fresh):
            layer, norm = pairs[id(old)]
            fresh.layer.kernel.assign(layer.kernel.numpy())
            fresh.layer.bias.assign(layer.bias.numpy() if layer.use_bias else 0.0 * fresh.layer.bias.numpy())
            graph.copy_weights([(norm, fresh.norm)])
        else:
            graph.copy_weights([(known, fresh)])
    _copy_ranges(rounded.model, learner.model)
    return learner


def fold_again(folded: Any, learner: graph.Rebuilt, rounded: graph.Rebuilt) -> None:
    """What was learned, into the rounded model without batch norms."""
    for old in graph.layers(folded):
        source, target = learner.layers.get(id(old)), rounded.layers.get(id(old))
        if source is None or target is None:
            continue
        if _normed(source):
            for variable, value in zip(target.layer.weights, with_norm(source.layer, source.norm), strict=True):
                variable.assign(value)
        else:
            graph.copy_weights([(source, target)])
    _copy_ranges(learner.model, rounded.model)


def alike(name: str, one: Any, other: Any, inputs: list[Any]) -> checks.Check:
    """The same answers but for rounding to int8, which is off meanwhile."""
    some = [array[:8] for array in inputs]
    for model in (one, other):
        switch(model, False)
    try:
        return checks.same(name, checks.outputs(one, some), checks.outputs(other, some), checks.rounding(one))
    finally:
        for model in (one, other):
            switch(model, True)


def switch(model: Any, on: bool) -> None:
    """Rounding on or off."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    for layer in graph.layers(model):
        if is_rounded_values(layer) or is_rounded_weights(layer):
            layer.enabled = on


def _normed(layer: Any) -> bool:
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_weights

    return is_rounded_weights(layer) and layer.norm is not None


def _pairs(model: Any, folded: Any) -> dict[int, tuple[Any, Any]]:
    """Layer and batch norm of the original, by the identity of the folded layer that does the work of both."""
    count = Counter(layer.name for layer in graph.layers(model))
    places = {layer.name: layer for layer in graph.layers(folded)}
    pairs = {}
    for layer, norm in batch_norms(graph.wiring(model)):
        place = places.get(layer.name)
        if place is None or count[layer.name] > 1 or not hasattr(layer, "kernel"):
            continue
        if type(place) is type(layer) and tuple(place.kernel.shape) == tuple(layer.kernel.shape):
            pairs[id(place)] = (layer, norm)
    return pairs


def _copy_ranges(source: Any, target: Any) -> None:
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    places = [[layer for layer in graph.layers(model) if is_rounded_values(layer)] for model in (source, target)]
    graph.copy_weights(list(zip(*places, strict=True)))
