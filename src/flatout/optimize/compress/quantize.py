"""Quantization to int8: after training, or with training, so that the model adapts to the rounding.

Batch norms are folded, rounding layers are inserted (`int8/insertion.py`), ranges are found on calibration data, and
the model is trained if a train function is given (`int8/norms.py`: with separate batch norms). The result is a Keras
model that computes as the int8 file will; `litert.py` and `onnx_qdq.py` write that file. The cost of rounding each
layer can be measured; layers that cost more than the tolerance stay in float.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress import averages, checks, progress, training
from flatout.optimize.compress.distill import learning_from
from flatout.optimize.compress.fold import fold
from flatout.optimize.compress.int8 import benefit, norms
from flatout.optimize.compress.int8.plain_form import save_plainly, served
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import cost, graph

Array = np.ndarray[Any, Any]

COMPARED_SAMPLES = 256
"""Samples on which weights between start and end of a training are compared with those at the end."""


def quantize(
    model: Any,
    calibration: Any,
    *,
    train: training.Train | None = None,
    teacher: Any = None,
    validation: Any = None,
    ranges: str = "averages",
    keep: float = 0.3,
    float_layers: tuple[str, ...] | str = (),
    tolerance: float = 0.05,
    batch_size: int = 64,
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Compressed:
    """A model that computes as int8 does.

    `calibration` are inputs (an array, or a list of one array per input; a few hundred samples). With `train` the model
    is trained with rounding; with a `teacher` (for example the model before it was compressed) it learns from its
    answers more than from labels. With `validation` (what `evaluate` takes, or a `benefit.Score`; by default `fit`'s
    `validation_data` if `train` is a dictionary), trained weights are used only if they are better. `ranges` of
    activations are moving "averages" or "learned". Trained weights `keep` this share of their old values, if the model
    still answers alike. `float_layers` names layers that stay in float; "auto" measures every layer and keeps those in
    float that alone move the outputs by more than `tolerance`.
    """
    from flatout.optimize.compress.int8.insertion import with_rounding

    if ranges not in ("averages", "learned"):
        raise CompressionRefused(f'ranges is "averages" or "learned", not {ranges!r}.')
    if not 0 <= keep < 1:
        raise CompressionRefused(f"keep is a share of the weights before training, from 0 to below 1, not {keep!r}.")
    score = _score(model, train, validation, batch_size)
    inputs = _arrays(calibration)
    folded = fold(model, keep_dropout=train is not None, data=inputs)
    details: dict[str, Any] = {}
    names = _float_layers(float_layers, folded.model, inputs, batch_size, tolerance, details)
    how: dict[str, Any] = {"skip": frozenset(names), "learned": ranges == "learned" and train is not None}
    rebuilt = with_rounding(folded.model, **how)
    _copy(folded.model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    graph.compile_like(rebuilt.model, model)
    found = folded.checks
    if train is not None:
        taught_by = None if teacher is None else training.fingerprint(teacher, [])
        settings = ["quantize", "norms", ranges, keep, sorted(frozenset(names)), seed, taught_by]
        journal = training.Journal(checkpoint, model, settings, train)
        work = _Training(train, teacher, keep, batch_size, seed, journal)
        calibrated = rebuilt.model.get_weights()
        found += work.run(model, folded.model, rebuilt, how, inputs)
        if score is not None:
            details["training"] = _use_better_weights(score, model, rebuilt.model, calibrated)
    details["float layers"] = list(names)
    size = Size(*cost.of(model))
    return Compressed(save_plainly(rebuilt.model), "int8", size, size, found, details=details)


def _float_layers(
    requested: tuple[str, ...] | str,
    folded: Any,
    inputs: list[Array],
    batch_size: int,
    tolerance: float,
    details: dict[str, Any],
) -> tuple[str, ...]:
    """The names of the layers that stay in float. The sensitivities are added to `details` if they are measured."""
    if requested == "auto":
        details["sensitivity"] = sensitivity(folded, inputs, batch_size)
        return tuple(name for name, loss in details["sensitivity"].items() if loss > tolerance)
    if isinstance(requested, str):
        raise CompressionRefused(f'float_layers takes names of layers, or "auto", not {requested!r}.')
    return tuple(requested)


@dataclass(frozen=True)
class _Training:
    """Training with rounding: with the batch norms of the original, which are folded again afterwards."""

    train: training.Train
    teacher: Any
    keep: float
    batch_size: int
    seed: int | None
    journal: training.Journal

    def run(
        self, model: Any, folded: Any, rebuilt: graph.Rebuilt, how: dict[str, Any], inputs: list[Array]
    ) -> tuple[checks.Check, ...]:
        """Train, and write the weights into the rounded model. Returns the checks of both steps."""
        learner = norms.unfolded(model, folded, rebuilt, **how)
        before = norms.expect_same_without_rounding("unfolded", rebuilt.model, learner.model, inputs)
        graph.compile_like(learner.model, model)

        def train_once(backup: Any) -> None:
            start = averages.current_weights(learner.model)
            with _trained_model(learner.model, self.teacher, model) as target:
                training.run(self.train, target, task="training with rounding", seed=self.seed, backup=backup)
            # Full batches: a model may have a fixed batch size.
            count = max(1, COMPARED_SAMPLES // self.batch_size) * self.batch_size
            some = [array[:count] for array in inputs]
            averages.blend_with_start(learner.model, start, self.keep, some, self.batch_size)

        self.journal.train("quantize", learner.model, train_once)
        norms.fold_again(folded, learner, rebuilt)
        after = norms.expect_same_without_rounding("folded again", learner.model, rebuilt.model, inputs)
        graph.compile_like(rebuilt.model, learner.model)
        return before, after


def _score(model: Any, train: training.Train | None, validation: Any, batch_size: int) -> benefit.Score | None:
    """How trained weights are compared with calibrated ones; None if they are not. Fails before anything is trained."""
    if train is None:
        return None
    if callable(validation):
        score: benefit.Score = validation
        return score
    if validation is None:
        given = train.get("validation_data") if isinstance(train, Mapping) else None
        usable = (
            given is not None and getattr(model, "compiled", False) and benefit.has_enough_batches(given, batch_size)
        )
        return benefit.by_compiled_metric(given, batch_size) if usable else None
    if not getattr(model, "compiled", False):
        raise CompressionRefused(
            "validation= needs the metrics of the model, and it is not compiled. Compile it first."
        )
    if not benefit.has_enough_batches(validation, batch_size):
        raise CompressionRefused(
            f"validation= has fewer than {benefit.MIN_PARTS} batches of {batch_size} samples: too few to see whether "
            "training helped. Give more samples, or a smaller batch_size=."
        )
    return benefit.by_compiled_metric(validation, batch_size)


def _use_better_weights(score: benefit.Score, original: Any, rounded: Any, calibrated: list[Array]) -> benefit.Verdict:
    """Compare the trained weights in the rounded model with the calibrated ones, and keep the better."""
    trained = rounded.get_weights()

    def with_weights(weights: list[Array]) -> Any:
        rounded.set_weights(weights)
        return rounded

    found = benefit.compare(score, lambda: original, lambda: with_weights(calibrated), lambda: with_weights(trained))
    with_weights(trained if found.training_helped else calibrated)
    return found


def _trained_model(rounded: Any, teacher: Any, like: Any) -> AbstractContextManager[Any]:
    """The model to train: the rounded one, or a wrapper that lets it learn from a teacher."""
    return nullcontext(rounded) if teacher is None else learning_from(teacher, rounded, like=like)


def calibrate(model: Any, inputs: list[Array], batch_size: int = 64) -> None:
    """Find the ranges of all values on data, with rounding off."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    rounders = [layer for layer in graph.layers(model) if is_rounded_values(layer)]
    norms.set_rounding(model, False)
    for layer in rounders:
        layer.calibrating = True
    try:
        starts = range(0, len(inputs[0]), batch_size)
        shown = progress.Progress("calibrating, batch", len(starts))
        for number, start in enumerate(starts):
            checks.outputs(model, [array[start : start + batch_size] for array in inputs])
            shown.step(number + 1)
    finally:
        for layer in rounders:
            layer.calibrating = False
        norms.set_rounding(model, True)


def sensitivity(model: Any, inputs: list[Array], batch_size: int = 64) -> dict[str, float]:
    """How far the outputs move, as a share of their spread, when one layer alone is rounded; by layer."""
    from flatout.optimize.compress.int8.insertion import with_rounding
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    rebuilt = with_rounding(model)
    _copy(model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    norms.set_rounding(rebuilt.model, False)
    some = [array[:batch_size] for array in inputs]
    expected = checks.outputs(rebuilt.model, some)
    losses = {}
    every = graph.layers(rebuilt.model)
    weighted = [layer for layer in every if is_rounded_weights(layer)]
    names = [layer.layer.name for layer in weighted]
    shown = progress.Progress("measuring layer", len(weighted))
    for number, layer in enumerate(weighted):
        own = layer.layer.name
        parts: list[Any] = [layer, *(v for v in every if is_rounded_values(v) and _owner(v.name, names) == own)]
        for part in parts:
            part.enabled = True
        found = checks.outputs(rebuilt.model, some)
        for part in parts:
            part.enabled = False
        losses[own] = checks.distance(expected, found)
        shown.step(number + 1)
    return dict(sorted(losses.items(), key=lambda item: -item[1]))


def _owner(rounder: str, layers: Sequence[str]) -> str:
    """The layer whose values are rounded there: `dense_1_values` are those of `dense_1`, not of `dense`."""
    return max((name for name in layers if rounder.startswith(f"{name}_")), key=len, default="")


def for_serving(model: Any) -> Any:
    """The model with rounded weights and fixed ranges, as it is written into a file."""
    return served(model, lambda layer, config: graph.remake(layer, {**config, "bounds": layer.range()}))


def _copy(model: Any, rebuilt: graph.Rebuilt) -> None:
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_weights

    for old in graph.layers(model):
        new = rebuilt.layers.get(id(old))
        if new is not None:
            graph.copy_weights([(old, new.layer if is_rounded_weights(new) else new)])


def _arrays(calibration: Any) -> list[Array]:
    from keras import tree

    arrays = [np.asarray(part) for part in tree.flatten(calibration)]
    if not arrays or not len(arrays[0]):
        raise CompressionRefused(
            "calibration has no samples: give a few hundred inputs, as an array or a list of arrays."
        )
    return arrays
