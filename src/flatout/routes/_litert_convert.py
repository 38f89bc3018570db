"""From the frozen subject to .tflite files.

A file for any batch where nothing in the graph depends on its size; otherwise one for each batch, in which every shape
is known: what the converter cannot tell, it leaves to TensorFlow's own operations, and those the runtime does not
have. Recurrent layers need a known batch, some of them unrolling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flatout.model.errors import FlatoutError
from flatout.routes._route import Precision
from flatout.routes.litert import ANY, file_for
from flatout.subject import graph
from flatout.subject.subject import Array, Subject

SHAPE_OPS = {"Shape", "Size", "Rank", "BroadcastArgs"}
CALIBRATION = 128
"""Samples: ranges hardly move after that."""

Make = Callable[[Any, int | None], bytes]
"""From a converter for this batch to the bytes of a file."""


def convert(subject: Subject, directory: Path, precision: Precision) -> None:
    write(subject, directory, lambda converter, batch: configured(converter, subject, precision, batch).convert())


def write(subject: Subject, directory: Path, make: Make) -> None:
    """The first form of the subject that the converter can make files from."""
    errors = []
    for flavour, batches in forms(subject):
        try:
            files = {batch: _made(subject, flavour, batch, make) for batch in batches}
        except FlatoutError:
            raise
        except Exception as error:
            errors.append(error)
            continue
        for batch, content in files.items():
            (directory / (ANY if batch is None or not batch else file_for(batch))).write_bytes(content)
        return
    raise errors[0]


def forms(subject: Subject) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    if subject.batching == "dynamic" and not subject.recurrent and not SHAPE_OPS & set(subject.ops):
        yield "saved_model", (None,)
    for flavour in subject.flavours:
        yield flavour, subject.batches


def _made(subject: Subject, flavour: str, batch: int | None, make: Make) -> bytes:
    import tensorflow as tf

    function = graph.frozen(subject, batch, flavour)
    return bytes(make(tf.lite.TFLiteConverter.from_concrete_functions([function]), batch))


def configured(converter: Any, subject: Subject, precision: Precision, batch: int | None) -> Any:
    import tensorflow as tf

    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if precision == "int8":
        converter.representative_dataset = lambda: calibration(subject, batch)
    return converter


def calibration(subject: Subject, batch: int | None, at_most: int = CALIBRATION) -> Iterator[list[Array]]:
    size = 1 if batch is None else batch
    return subject.calibration(size, max(at_most, size))
