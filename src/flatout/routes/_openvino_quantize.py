"""8 bits for OpenVINO with NNCF: ranges from samples; `mixed` lets NNCF hand layers that hurt back to float."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement
from flatout.routes._route import Needless
from flatout.subject.subject import Subject, in_batches

SAMPLES = 128
ENOUGH = 0.995
"""Agreement with the original at which no further layer goes back."""
HANDED_BACK = 16
"""Layers at most: each costs an evaluation of the model."""

Item = tuple[int, list[Any]]
"""The place of its first sample, and a batch."""


def quantize(model: Any, subject: Subject) -> Any:
    """A quantized copy of an OpenVINO model."""
    nncf = _quiet()
    return nncf.quantize(model, nncf.Dataset(_batches(subject)), **_options(nncf, subject))


def mixed(model: Any, subject: Subject) -> Any:
    import openvino

    nncf = _quiet()
    batches = _batches(subject)
    items = [(max(_size(subject), 1) * number, batch) for number, batch in enumerate(batches)]
    answers = subject.answers("calibration")

    def judged(compiled: Any, some: Iterable[Item]) -> tuple[float, list[float]]:
        """Agreement over all, and for each item: how NNCF asks for a metric."""
        values, ours, theirs = [], [], []
        for place, batch in some:
            found = compiled(batch)
            given = [np.asarray(found[output]) for output in compiled.outputs]
            wanted = [array[place] if not _size(subject) else _rows(array, place, len(batch[0])) for array in answers]
            values.append(min(agreement(wanted, given)))
            ours.append(wanted)
            theirs.append(given)
        return min(agreement(_columns(ours), _columns(theirs))), values

    first = nncf.quantize(model, nncf.Dataset(batches), **_options(nncf, subject))
    if judged(openvino.compile_model(first, "CPU"), items)[0] >= ENOUGH:
        raise Needless("nothing to hand back to float: the answers of openvino-int8 agree with the original's")
    return nncf.quantize_with_accuracy_control(
        model,
        nncf.Dataset(batches),
        nncf.Dataset(items),
        judged,
        max_drop=1 - ENOUGH,
        advanced_accuracy_restorer_parameters=nncf.AdvancedAccuracyRestorerParameters(
            max_num_iterations=HANDED_BACK, ranking_subset_size=32
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
        "model_type": nncf.ModelType.TRANSFORMER if attends(subject) else None,
    }


def attends(subject: Subject) -> bool:
    """Whether it is a transformer: products of two activations, and a softmax between them."""
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
