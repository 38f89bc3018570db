"""Quantization: int8 after training, or with training so that the model learns to live with the rounding.

Batch norms are folded, rounding layers put in (`insert.py`), ranges found on calibration data, then trained if asked
for (`learning.py`, with the batch norms at work). The result is a Keras model that computes as the int8 file will;
`litert.py` and `onnx_qdq.py` write that file. How much each layer loses by rounding is measured; layers that hurt more
than allowed stay in float.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress import averages, checks, cost, graph, learning, paying, progress, training
from flatout.optimize.compress.distill import taught
from flatout.optimize.compress.fold import fold
from flatout.optimize.compress.results import Compressed, Size

Array = np.ndarray[Any, Any]

KEPT_ON = 256
"""Samples by which it is judged whether weights on the way back to the start answer alike."""


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
    one's answers more than from labels. Given `validation` (what `evaluate` takes, or a `paying.Score`; `fit`'s own
    `validation_data` where `train` is a dictionary), trained weights are taken only where they pay. `ranges` of
    activations are moving "averages" or "learned". Trained weights `keep` this share of what they were before, where
    the model answers alike. `float_layers` names layers that stay in float; "auto" measures every layer and leaves
    those in float that move the outputs by more than `tolerance` by themselves.
    """
    from flatout.optimize.compress.insert import rounding

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
    rebuilt = rounding(folded.model, **how)
    _copy(folded.model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    graph.compile_like(rebuilt.model, model)
    found = folded.checks
    if train is not None:
        learner = learning.unfolded(model, folded.model, rebuilt, **how)
        found += (learning.alike("unfolded", rebuilt.model, learner.model, inputs),)
        graph.compile_like(learner.model, model)
        taught_by = None if teacher is None else training.fingerprint(teacher, [])
        journal = training.Journal(
            checkpoint, model, ["quantize", "norms", ranges, keep, sorted(skip), seed, taught_by]
        )

        def once(backup: Any) -> None:
            start = averages.settled(learner.model)
            with _pupil(learner.model, teacher, model) as pupil:
                training.run(train, pupil, task="training under rounding", seed=seed, backup=backup)
            count = max(1, KEPT_ON // batch_size) * batch_size  # whole batches: a model may know no other size
            averages.between(learner.model, start, keep, [array[:count] for array in inputs], batch_size)

        calibrated = rebuilt.model.get_weights()
        journal.trained("quantize", learner.model, once)
        learning.fold_again(folded.model, learner, rebuilt)
        found += (learning.alike("folded again", learner.model, rebuilt.model, inputs),)
        if score is not None:
            details["training"] = _kept_if_it_pays(score, model, rebuilt.model, calibrated)
        graph.compile_like(rebuilt.model, learner.model)
    details["float layers"] = list(float_layers)
    size = Size(*cost.of(model))
    return Compressed(rebuilt.model, "int8", size, size, found, details=details)


def _score(model: Any, train: training.Train | None, validation: Any, batch_size: int) -> paying.Score | None:
    """Settled before anything is trained."""
    if train is None:
        return None
    if callable(validation):
        score: paying.Score = validation
        return score
    if validation is None:
        given = train.get("validation_data") if isinstance(train, Mapping) else None
        usable = given is not None and getattr(model, "compiled", False) and paying.enough(given, batch_size)
        return paying.by_compiled_metric(given, batch_size) if usable else None
    if not getattr(model, "compiled", False):
        raise CompressionRefused(
            "validation= is judged by the metrics of the model, and it is not compiled. Compile it before."
        )
    if not paying.enough(validation, batch_size):
        raise CompressionRefused(
            f"validation= holds fewer than {paying.FEWEST} batches of {batch_size} samples: too few to tell whether "
            "training paid. Give more samples, or a smaller batch_size=."
        )
    return paying.by_compiled_metric(validation, batch_size)


def _kept_if_it_pays(score: paying.Score, original: Any, rounded: Any, calibrated: list[Array]) -> paying.Verdict:
    """The rounded model comes with its trained weights; it goes with them, or with those that were calibrated."""
    trained = rounded.get_weights()

    def with_weights(weights: list[Array]) -> Any:
        rounded.set_weights(weights)
        return rounded

    found = paying.verdict(score, lambda: original, lambda: with_weights(calibrated), lambda: with_weights(trained))
    with_weights(trained if found.pays else calibrated)
    return found


def _pupil(rounded: Any, teacher: Any, like: Any) -> AbstractContextManager[Any]:
    """What is trained: the rounded model, or what lets it learn from a teacher."""
    return nullcontext(rounded) if teacher is None else taught(teacher, rounded, like=like)


def calibrate(model: Any, inputs: list[Array], batch_size: int = 64) -> None:
    """Find the ranges of all values on data, with rounding off."""
    from flatout.optimize.compress.fake_quant import RoundedValues

    rounders = [layer for layer in graph.layers(model) if isinstance(layer, RoundedValues)]
    learning.switch(model, False)
    for layer in rounders:
        layer.watching = True
    try:
        starts = range(0, len(inputs[0]), batch_size)
        told = progress.Progress("calibrating, batch", len(starts))
        for number, start in enumerate(starts):
            checks.outputs(model, [array[start : start + batch_size] for array in inputs])
            told.step(number + 1)
    finally:
        for layer in rounders:
            layer.watching = False
        learning.switch(model, True)


def sensitivity(model: Any, inputs: list[Array], batch_size: int = 64) -> dict[str, float]:
    """By layer: how far the outputs move, as a share of their spread, when this layer alone is rounded."""
    from flatout.optimize.compress.fake_quant import RoundedValues, RoundedWeights
    from flatout.optimize.compress.insert import rounding

    rebuilt = rounding(model)
    _copy(model, rebuilt)
    calibrate(rebuilt.model, inputs, batch_size)
    learning.switch(rebuilt.model, False)
    some = [array[:batch_size] for array in inputs]
    expected = checks.outputs(rebuilt.model, some)
    losses = {}
    every = graph.layers(rebuilt.model)
    weighted = [layer for layer in every if isinstance(layer, RoundedWeights)]
    told = progress.Progress("measuring layer", len(weighted))
    for number, layer in enumerate(weighted):
        own = layer.layer.name
        parts: list[Any] = [layer, *(v for v in every if isinstance(v, RoundedValues) and v.name.startswith(f"{own}_"))]
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
    from flatout.optimize.compress.fake_quant import RoundedValues, RoundedWeights

    def make(layer: Any, config: dict[str, Any]) -> Any:
        if isinstance(layer, RoundedWeights):
            return graph.remake(layer.layer, dict(layer.layer.get_config()))
        if isinstance(layer, RoundedValues):
            config["bounds"] = layer.range()
        return graph.remake(layer, config)

    rebuilt = graph.Rebuilt(model, make)
    for old in graph.layers(model):
        new = rebuilt.layers[id(old)]
        if isinstance(old, RoundedWeights):
            for variable, value in zip(new.weights, old.served(), strict=True):
                variable.assign(value)
        elif not isinstance(old, RoundedValues):
            graph.copy_weights([(old, new)])
    return rebuilt.model


def _copy(model: Any, rebuilt: graph.Rebuilt) -> None:
    from flatout.optimize.compress.fake_quant import RoundedWeights

    for old in graph.layers(model):
        new = rebuilt.layers.get(id(old))
        if new is not None:
            graph.copy_weights([(old, new.layer if isinstance(new, RoundedWeights) else new)])


def _arrays(calibration: Any) -> list[Array]:
    from keras import tree

    arrays = [np.asarray(part) for part in tree.flatten(calibration)]
    if not arrays or not len(arrays[0]):
        raise CompressionRefused(
            "calibration holds no samples: give inputs of a few hundred, as an array or a list of arrays."
        )
    return arrays
