"""8-bit OpenVINO models, made by NNCF with ranges from samples; NNCF can return the worst layers to float."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement
from flatout.model.errors import RouteNotNeeded
from flatout.subject import Subject, in_batches

SAMPLES = 128
ENOUGH = 0.995
"""Agreement with the original at which no further layer is returned to float."""
MAX_FLOAT_LAYERS = 16
"""Each layer returned to float costs an evaluation of the model."""

Item = tuple[int, list[Any]]
"""The index of the first sample, and the batch."""


def quantize(model: Any, subject: Subject) -> Any:
    """A quantized copy of an OpenVINO model."""
    nncf = _quiet()
    return nncf.quantize(model, nncf.Dataset(_batches(subject)), **_options(nncf, subject))


def quantize_mixed(model: Any, subject: Subject) -> Any:
    """A copy of an OpenVINO model in 8 bits, except for the layers that NNCF returns to float."""
    import openvino

    nncf = _quiet()
    batches = _batches(subject)
    items = [(max(_size(subject), 1) * number, batch) for number, batch in enumerate(batches)]
    answers = subject.answers("calibration")

    def evaluate(compiled: Any, some: Iterable[Item]) -> tuple[float, list[float]]:
        """Agreement over all items, and for each item: the form in which NNCF wants a metric."""
        values, ours, theirs = [], [], []
        for start, batch in some:
            found = compiled(batch)
            given = [np.asarray(found[output]) for output in compiled.outputs]
            wanted = [array[start] if not _size(subject) else _rows(array, start, len(batch[0])) for array in answers]
            values.append(min(agreement(wanted, given)))
            ours.append(wanted)
            theirs.append(given)
        return min(agreement(_columns(ours), _columns(theirs))), values

    first = nncf.quantize(model, nncf.Dataset(batches), **_options(nncf, subject))
    if evaluate(openvino.compile_model(first, "CPU"), items)[0] >= ENOUGH:
        raise RouteNotNeeded("no layer needs float: the answers of openvino-int8 agree with the original's")
    return nncf.quantize_with_accuracy_control(
        model,
        nncf.Dataset(batches),
        nncf.Dataset(items),
        evaluate,
        max_drop=1 - ENOUGH,
        advanced_accuracy_restorer_parameters=nncf.AdvancedAccuracyRestorerParameters(
            max_num_iterations=MAX_FLOAT_LAYERS, ranking_subset_size=32
        ),
        **_options(nncf, subject),
    )


def _quiet() -> Any:
    import nncf

    nncf.set_log_level(logging.ERROR)
    return nncf


def _options(nncf: Any, subject: Subject) -> dict[str, Any]:
    return {
        "subset_size": SAMPLES,
        "model_type": nncf.ModelType.TRANSFORMER if is_transformer(subject) else None,
    }


def is_transformer(subject: Subject) -> bool:
    """Whether the model has products of two activations with a softmax between them."""
    products = sum(subject.ops.get(name, 0) for name in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"))
    return "Softmax" in subject.ops and products >= 2


def _size(subject: Subject) -> int:
    return 1 if subject.batching == "dynamic" else subject.batches[0]


def _batches(subject: Subject) -> list[list[Any]]:
    return list(in_batches([array[:SAMPLES] for array in subject.samples("calibration")], _size(subject)))


def _columns(rows: list[list[Any]]) -> list[Any]:
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _rows(array: Any, start: int, count: int) -> Any:
    return array[[i % len(array) for i in range(start, start + count)]]
