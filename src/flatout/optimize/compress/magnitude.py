"""Magnitude pruning: the smallest weights are set to zero and stay zero while the others are trained further.

The masks are Keras constraints of the variables, applied after every update of the optimizer, so they work in `fit` and
in the user's own training loop. A schedule raises the sparsity during training; at the end the zeros are counted. This
makes files smaller, because they compress well; dense kernels do not get faster.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import training
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import graph

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "polynomial": lambda done: 1 - (1 - done) ** 3,
}
"""Share of the target sparsity, by the share of the training that is done."""

RAISES = 64
"""In how many steps a `fit` raises the sparsity. The last ones cost the most accuracy, so they must be small."""


@dataclass(frozen=True)
class Target:
    """One variable with a mask."""

    layer: Any
    variable: Any
    mask: Any
    """A variable of ones and zeros of the same shape."""
    former: Any
    """The original constraint of the variable."""


class Masks:
    """The masks of a model."""

    def __init__(
        self,
        model: Any,
        sparsity: float,
        *,
        scope: str = "layer",
        pattern: tuple[int, int] | None = None,
        keep: tuple[str, ...] = (),
    ) -> None:
        import keras

        self.sparsity, self.scope, self.pattern = sparsity, scope, pattern
        self.targets: list[Target] = []
        for layer in graph.layers(model):
            if layer.name in keep or not getattr(layer, "trainable", False):
                continue
            for variable in kernels(layer):
                mask = keras.Variable(np.ones(variable.shape, "float32"), trainable=False, name=f"{layer.name}_mask")
                self.targets.append(Target(layer, variable, mask, variable.constraint))
        if not self.targets:
            raise CompressionRefused("No layer of this model has trainable weights that can be pruned.")

    def attach(self) -> None:
        for target in self.targets:
            target.variable.constraint = _MaskConstraint(target.mask, target.former)

    def detach(self) -> None:
        for target in self.targets:
            target.variable.constraint = target.former

    def raise_to(self, share: float) -> None:
        """Set the masks for this share of the target sparsity. Zeros are the smallest weights, so they stay zero."""
        target_share = self.sparsity * share
        sizes = [np.abs(np.asarray(target.variable.numpy(), dtype=np.float32)) for target in self.targets]
        limit = None
        if self.scope == "global" and self.pattern is None:
            every = np.concatenate([size.ravel() / (size.std() + 1e-12) for size in sizes])
            limit = float(np.sort(every)[max(0, int(np.ceil(target_share * every.size)) - 1)]) if target_share else -1.0
        for target, size in zip(self.targets, sizes, strict=True):
            if self.pattern is not None:
                keep = _pattern(size, self.pattern)
            elif limit is not None:
                keep = size / (size.std() + 1e-12) > limit
            else:
                keep = _largest(size, size.size - int(np.ceil(target_share * size.size)))
            target.mask.assign(keep.astype("float32"))
            target.variable.assign(np.asarray(target.variable.numpy()) * keep)

    def reached(self) -> float:
        """Share of zeros among the masked weights."""
        zeros = sum(int((target.variable.numpy() == 0).sum()) for target in self.targets)
        return zeros / sum(int(np.prod(target.variable.shape)) for target in self.targets)

    def verify(self) -> float:
        """Check that every masked weight is zero, and that the target sparsity is reached. Returns the sparsity."""
        for target in self.targets:
            if np.any(np.asarray(target.variable.numpy())[target.mask.numpy() == 0]):
                raise CompressionFailed(
                    f"Pruned weights of {target.layer.name} are not zero any more. An optimizer that is not one of "
                    "Keras' does not apply constraints: let train= use one of Keras'."
                )
        reached, expected = self.reached(), self.sparsity
        if self.pattern is not None:  # a row whose length is not a multiple of m has fewer zeros at its end
            removed = sum(int((target.mask.numpy() == 0).sum()) for target in self.targets)
            expected = removed / sum(int(np.prod(target.variable.shape)) for target in self.targets)
        if reached < expected - 1e-3:
            raise CompressionFailed(f"The target was a sparsity of {expected:.1%}; only {reached:.1%} was reached.")
        return reached


class _MaskConstraint:
    """A constraint: the mask, after the original constraint."""

    def __init__(self, mask: Any, former: Any) -> None:
        self._mask, self._former = mask, former

    def __call__(self, value: Any) -> Any:
        import keras

        value = value if self._former is None else self._former(value)
        return keras.ops.multiply(value, keras.ops.cast(self._mask, value.dtype))


def sparsify(
    model: Any,
    sparsity: float,
    *,
    train: training.Train | None = None,
    schedule: str = "polynomial",
    scope: str = "layer",
    pattern: tuple[int, int] | None = None,
    rounds: int = 3,
    keep: tuple[str, ...] = (),
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Compressed:
    """Set a share of the weights to zero.

    `schedule` is constant or polynomial; with `fit` it runs over the first three quarters of the steps, with a
    `train(model)` function over `rounds` calls of it. `scope` is layer (each equally sparse) or global (more zeros
    where weights are small). `pattern` (n, m) keeps the n largest of every m weights along a layer's input.
    """
    if schedule not in SCHEDULES or scope not in ("layer", "global"):
        raise CompressionRefused(f"schedule is one of {', '.join(SCHEDULES)}; scope is layer or global.")
    if pattern is not None:
        n, m = pattern
        if not 0 < n < m:
            raise CompressionRefused(f"A pattern n:m keeps n of m weights with 0 < n < m, not {n}:{m}.")
        sparsity = 1 - n / m
    pruned = graph.compile_like(graph.duplicate(model), model)
    masks = Masks(pruned, sparsity, scope=scope, pattern=pattern, keep=tuple(keep))
    journal = training.Journal(checkpoint, model, ["sparsify", sparsity, schedule, scope, pattern, seed], train)
    if train is None:
        masks.raise_to(1.0)
    else:
        masks.attach()
        try:
            _train(journal, masks, pruned, train, SCHEDULES[schedule], rounds, seed)
        finally:
            masks.detach()
    reached = masks.verify()
    total = sum(int(np.prod(v.shape)) for v in pruned.weights)
    before, after = (sum(int(np.count_nonzero(v.numpy())) for v in one.weights) for one in (model, pruned))
    return Compressed(
        pruned,
        "weights pruned",
        Size(total, nonzero=before),
        Size(total, nonzero=after),
        details={"sparsity": round(reached, 4), "compressed bytes": [compressed_size(model), compressed_size(pruned)]},
    )


def _train(journal: Any, masks: Masks, model: Any, train: Any, schedule: Any, rounds: int, seed: int | None) -> None:
    if callable(train):
        for number in range(1, rounds + 1):
            masks.raise_to(schedule(number / rounds))

            def train_once(backup: Any, number: int = number) -> None:
                task = f"training with masks, {number} of {rounds}"
                training.run(train, model, task=task, seed=seed)

            journal.train(f"sparse-{number}", model, train_once)
        masks.raise_to(1.0)
        return

    def fit(backup: Any) -> None:
        ours = [schedule_callback(masks, schedule)]
        training.run(train, model, task="training with masks", seed=seed, callbacks=ours, backup=backup)

    journal.train("sparse", model, fit)
    masks.raise_to(1.0)


def schedule_callback(masks: Masks, schedule: Callable[[float], float], over: float = 0.75) -> Any:
    """A Keras callback that raises the sparsity over the first part of a `fit`."""
    import keras

    class RaiseSparsity(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            self._steps = self.params.get("steps")
            self._last = -1.0
            self._set(0.0)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._epoch = epoch
            self._set((epoch / self.params["epochs"]) / over)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self._steps:
                self._set((self._epoch + batch / self._steps) / self.params["epochs"] / over)

        def on_train_end(self, logs: Any = None) -> None:
            self._set(1.0)  # also after early stopping

        def _set(self, done: float) -> None:
            share = schedule(int(min(done, 1.0) * RAISES) / RAISES)
            if share > self._last:
                masks.raise_to(share)
                self._last = share

    return RaiseSparsity()


def kernels(layer: Any) -> list[Any]:
    """The kernels of a layer: trainable variables with two axes or more. Embeddings have none."""
    if type(layer).__name__ in ("Embedding", "DepthwiseConv1D", "DepthwiseConv2D"):
        return []  # zeros in a table or in small filters save little and cost much accuracy
    return [v for v in getattr(layer, "trainable_variables", []) if len(v.shape) > 1]


def compressed_size(model: Any) -> int:
    """The size of all weights after zlib compression, as in a zipped file."""
    buffer = io.BytesIO()
    for variable in model.weights:
        buffer.write(np.ascontiguousarray(training.as_array(variable)).tobytes())
    return len(zlib.compress(buffer.getvalue(), 6))


def _largest(size: Any, count: int) -> Any:
    keep = np.zeros(size.size, bool)
    if count > 0:
        keep[np.argpartition(size.ravel(), -count)[-count:]] = True
    return keep.reshape(size.shape)


def _pattern(size: Any, pattern: tuple[int, int]) -> Any:
    """A mask of the n largest of every m weights along the input axis, the last but one."""
    n, m = pattern
    lines = np.moveaxis(size, -2, -1)
    short = -lines.shape[-1] % m
    padded = np.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(0, short)], constant_values=-1)
    blocks = padded.reshape(*padded.shape[:-1], -1, m)
    ranks = np.argsort(np.argsort(-blocks, axis=-1, kind="stable"), axis=-1, kind="stable")
    keep = (ranks < n).reshape(padded.shape)[..., : lines.shape[-1]]
    return np.moveaxis(keep, -1, -2)
