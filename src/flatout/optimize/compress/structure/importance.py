"""Scores how important each unit is: by the size of its weights, its batch norm's scale, or the loss without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.channels import Channels, Group
from flatout.optimize.compress.structure.units import Cut

Scores = dict[int, float]
"""By the root of a unit; the lowest scores are removed first."""
Loss = Callable[[Any], float]

METHODS = ("l1", "batch-norm", "sensitivity")


def score(channels: Channels, method: str | Callable[[Channels], Scores], loss: Loss | None = None) -> Scores:
    if callable(method):
        return method(channels)
    if method == "l1":
        return by_weights(channels)
    if method == "batch-norm":
        return by_batch_norm(channels)
    if method == "sensitivity":
        if loss is None:
            raise CompressionRefused('importance="sensitivity" measures the loss: give data=(x, y) to measure it on.')
        return by_sensitivity(channels, loss)
    raise CompressionRefused(f"There is no importance {method!r}. The methods are: {', '.join(METHODS)}.")


def by_weights(channels: Channels) -> Scores:
    """Mean absolute weight of the filters that make a unit, relative to the others of the same layer."""
    return _mean_over(channels, lambda cut: cut.produces and len(cut.variable.shape) > 1, relative=True)


def by_batch_norm(channels: Channels) -> Scores:
    """The scale in the batch norms of a unit; where there is none, its weights times the mean scale."""
    import keras

    scales = _mean_over(
        channels,
        lambda cut: isinstance(cut.layer, keras.layers.BatchNormalization) and cut.variable is cut.layer.gamma,
        relative=False,
    )
    usual = float(np.mean(list(scales.values()))) if scales else 1.0
    return {unit: scales.get(unit, value * usual) for unit, value in by_weights(channels).items()}


def by_sensitivity(channels: Channels, loss: Loss) -> Scores:
    """Within a group by weights; between groups by how much the loss rises when the lower half of the group is
    silenced."""
    scores = by_weights(channels)
    copy = graph.Rebuilt(channels.model)
    pairs = [(layer, copy.layers[id(layer)]) for layer in graph.layers(channels.model)]
    graph.copy_weights(pairs)
    graph.compile_like(copy.model, channels.model)
    copies = _variable_copies(pairs)
    before = loss(copy.model)
    rises = {}
    for group in channels.groups:
        half = frozenset(sorted(group.units, key=lambda unit: scores.get(unit, 0.0))[: max(1, len(group.units) // 2)])
        kept = silence(channels, half, copies)
        rises[group.name] = max(loss(copy.model) - before, 0.0) / len(half)
        for variable, value in kept:
            variable.assign(value)
    floor = 0.1 * float(np.mean(list(rises.values()) or [0])) + 1e-12
    return {unit: scores.get(unit, 0.0) * (rises[g.name] + floor) for g in channels.groups for unit in g.units}


def silence(channels: Channels, removed: frozenset[int], copies: dict[int, Any] | None = None) -> list[tuple[Any, Any]]:
    """Set all weights of the units to zero, where they are made and where they are read. Returns the old values.

    `copies`: the variables of a copy, by the identity of the model's variables.
    """
    before = []
    for cut in channels.ledger.cuts.values():
        variable = cut.variable if copies is None else copies[id(cut.variable)]
        keep = channels.ledger.kept(cut.units, removed)
        if len(keep) == len(cut.units):
            continue
        value = np.array(variable.numpy())
        before.append((variable, value.copy()))
        gone = np.setdiff1d(np.arange(len(cut.units)), keep)
        value[(slice(None),) * cut.axis + (gone,)] = 0
        variable.assign(value)
    return list(reversed(before))


def variable_copies(channels: Channels, copy: graph.Rebuilt) -> dict[int, Any]:
    return _variable_copies([(layer, copy.layers[id(layer)]) for layer in graph.layers(channels.model)])


def _variable_copies(pairs: list[tuple[Any, Any]]) -> dict[int, Any]:
    return {
        id(old): new
        for before, after in pairs
        for old, new in zip(getattr(before, "variables", []), getattr(after, "variables", []), strict=True)
    }


def _mean_over(channels: Channels, chosen: Callable[[Cut], Any], *, relative: bool) -> Scores:
    sums: dict[int, list[float]] = {}
    for cut in channels.ledger.cuts.values():
        if not chosen(cut):
            continue
        value = np.abs(np.asarray(cut.variable.numpy(), dtype=np.float64))
        strength = value.mean(axis=tuple(axis for axis in range(value.ndim) if axis != cut.axis))
        if relative:
            strength = strength / (strength.mean() + 1e-12)
        for root, size in zip(channels.ledger.roots(cut.units), strength, strict=True):
            sums.setdefault(int(root), []).append(float(size))
    return {root: float(np.mean(sizes)) for root, sizes in sums.items()}


def lowest(group: Group, scores: Scores) -> list[int]:
    return sorted(group.units, key=lambda unit: scores.get(unit, 0.0))
