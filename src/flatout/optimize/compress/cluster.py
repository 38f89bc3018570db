"""Weight clustering: each layer keeps a few distinct values, so that a file of indices and a small table say it all.

The values are the centres of a k-means over the layer's weights. While training goes on, every update is followed by
a projection: weights of one cluster take their common mean. Zeros of a pruned model can be kept as a cluster of their
own.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import training
from flatout.optimize.compress.magnitude import kernels, packed
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import graph

Array = np.ndarray[Any, Any]


def cluster(
    model: Any,
    clusters: int = 16,
    *,
    train: training.Train | None = None,
    keep_zeros: bool = True,
    keep: tuple[str, ...] = (),
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Compressed:
    """Let the kernels of every layer have at most `clusters` distinct values."""
    if clusters < 2:
        raise CompressionRefused(f"At least 2 clusters are needed, not {clusters}.")
    result = graph.compile_like(graph.duplicate(model), model)
    held: list[tuple[Any, Any]] = []
    for layer in graph.layers(result):
        for variable in [] if layer.name in keep else kernels(layer):
            value = np.asarray(training.plain(variable), dtype=np.float32)
            centres, places = centres_of(value, clusters, keep_zeros)
            variable.assign(centres[places].reshape(value.shape))
            held.append((variable, _Projected(places.reshape(value.shape), centres, variable.constraint)))
    if not held:
        raise CompressionRefused("No layer of this model has weights that could be clustered and may be trained.")
    if train is not None:
        journal = training.Journal(checkpoint, model, ["cluster", clusters, keep_zeros, seed])
        for variable, projection in held:
            variable.constraint = projection

        def once(backup: Any) -> None:
            training.run(train, result, task="training under clusters", seed=seed, backup=backup)

        try:
            journal.trained("cluster", result, once)
        finally:
            for variable, projection in held:
                variable.constraint = projection.former
    worst = max(len(np.unique(training.plain(variable))) for variable, _ in held)
    if worst > clusters:
        raise CompressionFailed(
            f"A layer has {worst} distinct values after training, {clusters} were asked for: "
            "an optimizer that is not one of Keras' does not apply constraints."
        )
    size = Size(sum(int(np.prod(v.shape)) for v in result.weights))
    return Compressed(
        result,
        "clustered",
        size,
        size,
        details={"distinct values": worst, "compressed bytes": [packed(model), packed(result)]},
    )


def centres_of(value: Array, clusters: int, keep_zeros: bool, rounds: int = 20) -> tuple[Array, Array]:
    """(centres, place of each weight): k-means on a line, where nearest means between two borders."""
    flat = value.ravel()
    zeros = flat == 0 if keep_zeros and (flat == 0).mean() > 0.2 else np.zeros(flat.shape, bool)
    rest = flat[~zeros]
    count = clusters - int(zeros.any())
    if not rest.size:
        return np.zeros(1, np.float32), np.zeros(flat.shape, np.int64)
    centres = np.unique(np.linspace(rest.min(), rest.max(), min(count, rest.size)))
    for _ in range(rounds):
        places = np.searchsorted((centres[1:] + centres[:-1]) / 2, rest)
        sums = np.bincount(places, weights=rest, minlength=len(centres))
        sizes = np.bincount(places, minlength=len(centres))
        moved = np.unique(np.where(sizes, sums / np.maximum(sizes, 1), centres))
        if len(moved) == len(centres) and np.allclose(moved, centres, atol=1e-9):
            break
        centres = moved
    places = np.searchsorted((centres[1:] + centres[:-1]) / 2, rest)
    if not zeros.any():
        return centres.astype(np.float32), places
    every = np.full(flat.shape, len(centres))
    every[~zeros] = places
    return np.append(centres, 0).astype(np.float32), every


class _Projected:
    """A constraint: weights of one cluster take their mean; a cluster of zeros stays zero."""

    def __init__(self, places: Array, centres: Array, former: Any) -> None:
        self.former = former
        self._places = places.ravel().astype("int32")
        self._count = len(centres)
        self._alive = (centres != 0).astype("float32")

    def __call__(self, value: Any) -> Any:
        from keras import ops

        value = value if self.former is None else self.former(value)
        flat = ops.reshape(ops.cast(value, "float32"), (-1,))
        sums = ops.segment_sum(flat, self._places, num_segments=self._count)
        sizes = np.maximum(np.bincount(self._places, minlength=self._count), 1).astype("float32")
        means = sums / sizes * self._alive
        return ops.cast(ops.reshape(ops.take(means, self._places), ops.shape(value)), value.dtype)
