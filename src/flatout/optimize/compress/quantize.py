"""Quantization to int8: after training, or with training, so that the model adapts to the rounding.

Batch norms are folded, rounding layers are inserted (`int8/insertion.py`), ranges are found on calibration data, and
the model is trained if a train function is given (`int8/norms.py`: with separate batch norms). The result is a Keras
model that computes as the int8 file will; `litert.py` and `onnx_qdq.py` write that file. The cost of rounding each
layer can be measured; layers that cost more than the tolerance stay in float.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress import averages, checks, progress, training
from flatout.optimize.compress.distill import taught
from flatout.optimize.compress.fold import fold
from flatout.optimize.compress.int8 import benefit, norms
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

    `calibration` holds inputs (an array, or a list of one array per input; a few hundred samples). With `train` the
    model is trained under rounding; given a `teacher` (the model before it was compressed, say), it learns from that
    one's answers more than from labels. Given `validation` (what `evaluate` takes, or a `benefit.Score`; `fit`'s own
    `validation_data` where `train` is a dictionary), trained weights are taken only where they pay. `ranges` of
    activations are moving "averages" or "learned". Trained weights `keep` this share of what they were before, where
    the model answers alike. `float_layers` names layers that stay in float; "auto" measures every layer and leaves
    those in float that move the outputs by more than `tolerance` by themselves.
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
    if float_layers == "auto":
        losses = sensitivity(folded.model, inputs, batch_size)
        details["sensitivity"] = losses
        float_layers = tuple(name for name, loss in losses.items() if loss > tolerance)
    elif isinstance(float_layers, str):
        raise CompressionRefused(f'float_layers takes names of layers, or "auto", not {float_layers!r}.')
    skip = frozenset(float_layers)
    how: dict[str, Any] = {"skip": skip, "learned": ranges == "learned" and train is not None}
    rebuilt = with_rounding(folded.model, **how)
    _copy(folded.model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    graph.compile_like(rebuilt.model, model)
    found = folded.checks
    if train is not None:
        learner = norms.unfolded(model, folded.model, rebuilt, **how)
        found += (norms.alike("unfolded", rebuilt.model, learner.model, inputs),)
        graph.compile_like(learner.model, model)
        taught_by = None if teacher is None else training.fingerprint(teacher, [])
        journal = training.Journal(
            checkpoint, model, ["quantize", "norms", ranges, keep, sorted(skip), seed, taught_by]
        )

        def once(backup: Any) -> None:
            start = averages.settled(learner.model)
            with _pupil(learner.model, teacher, model) as pupil:
                training.run(train, pupil, task="training under rounding", seed=seed, backup=backup)
            count = max(1, COMPARED_SAMPLES // batch_size) * batch_size  # whole batches: a model may know no other size
            averages.between(learner.model, start, keep, [array[:count] for array in inputs], batch_size)

        calibrated = rebuilt.model.get_weights()
        journal.trained("quantize", learner.model, once)
        norms.fold_again(folded.model, learner, rebuilt)
        found += (norms.alike("folded again", learner.model, rebuilt.model, inputs),)
        if score is not None:
            details["training"] = _kept_if_it_pays(score, model, rebuilt.model, calibrated)
        graph.compile_like(rebuilt.model, learner.model)
    details["float layers"] = list(float_layers)
    size = Size(*cost.of(model))
    return Compressed(rebuilt.model, "int8", size, size, found, details=details)


def _score(model: Any, train: training.Train | None, validation: Any, batch_size: int) -> benefit.Score | None:
    """Settled before anything is trained."""
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
            "validation= is judged by the metrics of the model, and it is not compiled. Compile it before."
        )
    if not benefit.has_enough_batches(validation, batch_size):
        raise CompressionRefused(
            f"validation= has fewer than {benefit.MIN_PARTS} batches of {batch_size} samples: too few to see whether "
            "training helped. Give more samples, or a smaller batch_size=."
        )
    return benefit.by_compiled_metric(validation, batch_size)


def _kept_if_it_pays(score: benefit.Score, original: Any, rounded: Any, calibrated: list[Array]) -> benefit.Verdict:
    """The rounded model comes with its trained weights; it goes with them, or with those that were calibrated."""
    trained = rounded.get_weights()

    def with_weights(weights: list[Array]) -> Any:
        rounded.set_weights(weights)
        return rounded

    found = benefit.compare(score, lambda: original, lambda: with_weights(calibrated), lambda: with_weights(trained))
    with_weights(trained if found.training_helped else calibrated)
    return found


def _pupil(rounded: Any, teacher: Any, like: Any) -> AbstractContextManager[Any]:
    """What is trained: the rounded model, or what lets it learn from a teacher."""
    return nullcontext(rounded) if teacher is None else taught(teacher, rounded, like=like)


def calibrate(model: Any, inputs: list[Array], batch_size: int = 64) -> None:
    """Find the ranges of all values on data, with rounding off."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values

    rounders = [layer for layer in graph.layers(model) if is_rounded_values(layer)]
    norms.switch(model, False)
    for layer in rounders:
        layer.calibrating = True
    try:
        starts = range(0, len(inputs[0]), batch_size)
        told = progress.Progress("calibrating, batch", len(starts))
        for number, start in enumerate(starts):
            checks.outputs(model, [array[start : start + batch_size] for array in inputs])
            told.step(number + 1)
    finally:
        for layer in rounders:
            layer.calibrating = False
        norms.switch(model, True)


def sensitivity(model: Any, inputs: list[Array], batch_size: int = 64) -> dict[str, float]:
    """By layer: how far the outputs move, as a share of their spread, when this layer alone is rounded."""
    from flatout.optimize.compress.int8.insertion import with_rounding
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    rebuilt = with_rounding(model)
    _copy(model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    norms.switch(rebuilt.model, False)
    some = [array[:batch_size] for array in inputs]
    expected = checks.outputs(rebuilt.model, some)
    losses = {}
    every = graph.layers(rebuilt.model)
    weighted = [layer for layer in every if is_rounded_weights(layer)]
    told = progress.Progress("measuring layer", len(weighted))
    for number, layer in enumerate(weighted):
        own = layer.layer.name
        parts: list[Any] = [layer, *(v for v in every if is_rounded_values(v) and v.name.startswith(f"{own}_"))]
        for part in parts:
            part.enabled = True
        found = checks.outputs(rebuilt.model, some)
        for part in parts:
            part.enabled = False
        losses[own] = checks.apart(expected, found)
        told.step(number + 1)
    return dict(sorted(losses.items(), key=lambda item: -item[1]))


def served(model: Any) -> Any:
    """The same model with its weights rounded and its ranges settled for good: what is written into a file."""
    from flatout.optimize.compress.int8.rounding_layers import is_rounded_values, is_rounded_weights

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if is_rounded_weights(layer):
            return graph.remake(layer.layer, dict(layer.layer.get_config()))
        if is_rounded_values(layer):
            config["bounds"] = layer.range()
        return graph.remake(layer, config)

    rebuilt = graph.Rebuilt(model, make)
    for old in graph.layers(model):
        new = rebuilt.layers[id(old)]
        if is_rounded_weights(old):
            for variable, value in zip(new.weights, old.served(), strict=True):
                variable.assign(value)
        elif not is_rounded_values(old):
            graph.copy_weights([(old, new)])
    return rebuilt.model


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
            "calibration holds no samples: give inputs of a few hundred, as an array or a list of arrays."
        )
    return arrays
