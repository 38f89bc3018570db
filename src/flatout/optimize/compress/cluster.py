"""Weight clustering: each layer has a few distinct values, so that indices and a small table describe its weights.

The values are the centres of a k-means over the layer's weights. During training every update is followed by a
projection: all weights of a cluster are set to their mean. The zeros of a pruned model can be kept as a cluster of
their own.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import training
from flatout.optimize.compress.magnitude import compressed_size, kernels
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
    """Reduce the kernels of every layer to at most `clusters` distinct values."""
    if clusters < 2:
        raise CompressionRefused(f"At least 2 clusters are needed, not {clusters}.")
    result = graph.compile_like(graph.duplicate(model), model)
    projections: list[tuple[Any, Any]] = []
    for layer in graph.layers(result):
        for variable in [] if layer.name in keep else kernels(layer):
            value = np.asarray(training.as_array(variable), dtype=np.float32)
            centres, labels = find_centres(value, clusters, keep_zeros)
            variable.assign(centres[labels].reshape(value.shape))
            projections.append((variable, _Projection(labels.reshape(value.shape), centres, variable.constraint)))
    if not projections:
        raise CompressionRefused("No layer of this model has trainable weights that can be clustered.")
    if train is not None:
        journal = training.Journal(checkpoint, model, ["cluster", clusters, keep_zeros, seed], train)
        for variable, projection in projections:
            variable.constraint = projection

        def train_once(backup: Any) -> None:
            training.run(train, result, task="training with clusters", seed=seed, backup=backup)

        try:
            journal.train("cluster", result, train_once)
        finally:
            for variable, projection in projections:
                variable.constraint = projection.former
    worst = max(len(np.unique(training.as_array(variable))) for variable, _ in projections)
    if worst > clusters:
        raise CompressionFailed(
            f"A layer has {worst} distinct values after training; {clusters} were requested. "
            "An optimizer that is not one of Keras' does not apply constraints."
        )
    size = Size(sum(int(np.prod(v.shape)) for v in result.weights))
    return Compressed(
        result,
        "clustered",
        size,
        size,
        details={"distinct values": worst, "compressed bytes": [compressed_size(model), compressed_size(result)]},
    )


def find_centres(value: Array, clusters: int, keep_zeros: bool, rounds: int = 20) -> tuple[Array, Array]:
    """(centres, cluster of each weight): k-means in one dimension, where clusters are intervals."""
    flat = value.ravel()
    zeros = flat == 0 if keep_zeros and (flat == 0).mean() > 0.2 else np.zeros(flat.shape, bool)
    rest = flat[~zeros]
    count = clusters - int(zeros.any())
    if not rest.size:
        return np.zeros(1, np.float32), np.zeros(flat.shape, np.int64)
    centres = np.unique(np.linspace(rest.min(), rest.max(), min(count, rest.size)))
    for _ in range(rounds):
        labels = np.searchsorted((centres[1:] + centres[:-1]) / 2, rest)
        sums = np.bincount(labels, weights=rest, minlength=len(centres))
        sizes = np.bincount(labels, minlength=len(centres))
        moved = np.unique(np.where(sizes, sums / np.maximum(sizes, 1), centres))
        if len(moved) == len(centres) and np.allclose(moved, centres, atol=1e-9):
            break
        centres = moved
    labels = np.searchsorted((centres[1:] + centres[:-1]) / 2, rest)
    if not zeros.any():
        return centres.astype(np.float32), labels
    all_labels = np.full(flat.shape, len(centres))
    all_labels[~zeros] = labels
    return np.append(centres, 0).astype(np.float32), all_labels


class _Projection:
    """A constraint that sets the weights of each cluster to their mean; a cluster of zeros stays zero."""

    def __init__(self, labels: Array, centres: Array, former: Any) -> None:
        self.former = former
        self._labels = labels.ravel().astype("int32")
        self._count = len(centres)
        self._nonzero = (centres != 0).astype("float32")

    def __call__(self, value: Any) -> Any:
        from keras import ops

        value = value if self.former is None else self.former(value)
        flat = ops.reshape(ops.cast(value, "float32"), (-1,))
        sums = ops.segment_sum(flat, self._labels, num_segments=self._count)
        sizes = np.maximum(np.bincount(self._labels, minlength=self._count), 1).astype("float32")
        means = sums / sizes * self._nonzero
        return ops.cast(ops.reshape(ops.take(means, self._labels), ops.shape(value)), value.dtype)
