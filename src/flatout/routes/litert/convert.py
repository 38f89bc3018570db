"""Converts the frozen subject to .tflite files.

One file for any batch size where nothing in the graph depends on it; otherwise one file for each batch size, in which
every shape is known. Where a shape is unknown, the converter falls back to TensorFlow's own operations, which the
runtime lacks. Recurrent layers need a known batch size, and some of them unrolling.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flatout.model.errors import FlatoutError
from flatout.routes._route import Precision
from flatout.routes.litert import ANY_BATCH, SHAPES, file_for
from flatout.subject import Array, Subject, graph
from flatout.subject.writer import has_row_per_sample

SHAPE_OPS = {"Shape", "Size", "Rank", "BroadcastArgs"}
CALIBRATION_SAMPLES = 128
"""More samples hardly change the ranges."""

Make = Callable[[Any, int | None], bytes]
"""Takes a converter and its batch size, returns the bytes of a file."""


def convert(subject: Subject, directory: Path, precision: Precision) -> None:
    write(subject, directory, lambda converter, batch: configure(converter, subject, precision, batch).convert())


def write(subject: Subject, directory: Path, make: Make) -> None:
    """Write files from the first form of the subject that the converter can handle."""
    errors = []
    for flavour, batches in forms(subject):
        try:
            files = {batch: _convert_form(subject, flavour, batch, make) for batch in batches}
        except FlatoutError:
            raise
        except Exception as error:
            errors.append(error)
            continue
        for batch, content in files.items():
            (directory / (ANY_BATCH if batch is None or not batch else file_for(batch))).write_bytes(content)
        (directory / SHAPES).write_text(json.dumps({"rows": has_row_per_sample(subject)}))
        return
    raise errors[0]


def forms(subject: Subject) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    if subject.batching == "dynamic" and not subject.recurrent and not SHAPE_OPS & set(subject.ops):
        yield "saved_model", (None,)
    for flavour in subject.flavours:
        yield flavour, subject.batches


def _convert_form(subject: Subject, flavour: str, batch: int | None, make: Make) -> bytes:
    import tensorflow as tf

    function = graph.frozen(subject, batch, flavour)
    return bytes(make(tf.lite.TFLiteConverter.from_concrete_functions([function]), batch))


def configure(converter: Any, subject: Subject, precision: Precision, batch: int | None) -> Any:
    import tensorflow as tf

    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if precision == "int8":
        converter.representative_dataset = lambda: calibration(subject, batch)
    return converter


def calibration(subject: Subject, batch: int | None, at_most: int = CALIBRATION_SAMPLES) -> Iterator[list[Array]]:
    size = 1 if batch is None else batch
    return subject.calibration(size, max(at_most, size))
