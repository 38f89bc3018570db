"""How much each unit matters: the size of its weights, its batch norm's scale, or what the loss says when it is
gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress.structure import graph
from flatout.optimize.compress.structure.channels import Channels, Group
from flatout.optimize.compress.structure.units import Cut

Scores = dict[int, float]
"""By root of a unit; what scores low goes first."""
Loss = Callable[[Any], float]

WAYS = ("l1", "batch-norm", "sensitivity")


def score(channels: Channels, way: str | Callable[[Channels], Scores], loss: Loss | None = None) -> Scores:
    if callable(way):
        return way(channels)
    if way == "l1":
        return by_weights(channels)
    if way == "batch-norm":
        return by_batch_norm(channels)
    if way == "sensitivity":
        if loss is None:
            raise CompressionRefused('importance="sensitivity" measures the loss: give data=(x, y) to measure it on.')
        return by_sensitivity(channels, loss)
    raise CompressionRefused(f"There is no importance {way!r}; there are {', '.join(WAYS)}.")


def by_weights(channels: Channels) -> Scores:
    """Mean absolute weight of the filters that make a unit, against the others of the same layer."""
    return _mean_over(channels, lambda cut: cut.produces and len(cut.variable.shape) > 1, relative=True)


def by_batch_norm(channels: Channels) -> Scores:
    """The scale that batch norms give a unit; where there is none, its weights against the usual scale."""
    import keras

    scales = _mean_over(
        channels,
        lambda cut: isinstance(cut.layer, keras.layers.BatchNormalization) and cut.variable is cut.layer.gamma,
        relative=False,
    )
    usual = float(np.mean(list(scales.values()))) if scales else 1.0
    return {unit: scales.get(unit, value * usual) for unit, value in by_weights(channels).items()}


def by_sensitivity(channels: Channels, loss: Loss) -> Scores:
    """By weights inside a group; between groups by what the loss gains when the lower half of the group is
    silenced."""
    scores = by_weights(channels)
    copy = graph.Rebuilt(channels.model)
    pairs = [(layer, copy.layers[id(layer)]) for layer in graph.layers(channels.model)]
    graph.copy_weights(pairs)
    graph.compile_like(copy.model, channels.model)
    twins = _twins(pairs)
    before = loss(copy.model)
    rises = {}
    for group in channels.groups:
        half = frozenset(sorted(group.units, key=lambda unit: scores.get(unit, 0.0))[: max(1, len(group.units) // 2)])
        kept = silence(channels, half, twins)
        rises[group.name] = max(loss(copy.model) - before, 0.0) / len(half)
        for variable, value in kept:
            variable.assign(value)
    floor = 0.1 * float(np.mean(list(rises.values()) or [0])) + 1e-12
    return {unit: scores.get(unit, 0.0) * (rises[g.name] + floor) for g in channels.groups for unit in g.units}


def silence(channels: Channels, removed: frozenset[int], twins: dict[int, Any] | None = None) -> list[tuple[Any, Any]]:
    """Set all that belongs to the units to zero, where they are made and where they are read; what was there before.

    `twins` gives the variables of a copy for those of the model.
    """
    before = []
    for cut in channels.ledger.cuts.values():
        variable = cut.variable if twins is None else twins[id(cut.variable)]
        keep = channels.ledger.kept(cut.units, removed)
        if len(keep) == len(cut.units):
            continue
        value = np.array(variable.numpy())
        before.append((variable, value.copy()))
        gone = np.setdiff1d(np.arange(len(cut.units)), keep)
        value[(slice(None),) * cut.axis + (gone,)] = 0
        variable.assign(value)
    return list(reversed(before))


def twins_of(channels: Channels, copy: graph.Rebuilt) -> dict[int, Any]:
    return _twins([(layer, copy.layers[id(layer)]) for layer in graph.layers(channels.model)])


def _twins(pairs: list[tuple[Any, Any]]) -> dict[int, Any]:
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
