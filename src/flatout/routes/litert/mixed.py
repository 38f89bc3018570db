"""int8 except for some layers: the worst ones are returned to float until the answers agree.

TensorFlow's quantization debugger reports each layer's error against its own float result, in quantization steps; for
values spread evenly over the steps it is 0.29 steps. The number of layers in float is doubled until the answers to the
calibration samples agree with the original's. Held-out samples are not used.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement
from flatout.model.errors import ConversionFailed, RouteNotNeeded
from flatout.routes._route import run_loader
from flatout.routes.litert import ANY_BATCH, loader_source
from flatout.routes.litert.convert import calibration, configure, write
from flatout.subject import Subject, in_batches

ENOUGH = 0.995
"""Agreement with the original at which no further layer is returned to float."""
DEBUGGED_SAMPLES = 16
JUDGED_SAMPLES = 128


def convert(subject: Subject, directory: Path) -> None:
    float_layers: list[str] = []
    write(subject, directory, lambda converter, batch: _quantize(converter, subject, batch, float_layers))
    (directory / "float_layers.txt").write_text("".join(f"{name}\n" for name in float_layers))


def _quantize(converter: Any, subject: Subject, batch: int | None, float_layers: list[str]) -> bytes:
    import tensorflow as tf

    configure(converter, subject, "int8", batch)
    debugger = tf.lite.experimental.QuantizationDebugger(
        converter=converter, debug_dataset=lambda: calibration(subject, batch, DEBUGGED_SAMPLES)
    )
    if float_layers:  # already found for another batch size
        return _with_floats(debugger, float_layers)
    content = bytes(debugger.get_nondebug_quantized_model())
    if _agreement(content, subject, batch) >= ENOUGH:
        raise RouteNotNeeded("no layer needs float: the answers of litert-int8 agree with the original's")
    debugger.run()
    worst = _worst_first(debugger)
    count = 1
    while True:
        float_layers[:] = worst[:count]
        content = _with_floats(debugger, float_layers)
        if _agreement(content, subject, batch) >= ENOUGH:
            return content
        if count >= len(worst) // 2:
            raise ConversionFailed(
                f"With {count} of {len(worst)} layers in float the answers still do not agree with the original."
            )
        count *= 2


def _with_floats(debugger: Any, float_layers: list[str]) -> bytes:
    import tensorflow as tf

    debugger.options = tf.lite.experimental.QuantizationDebugOptions(denylisted_nodes=float_layers)
    return bytes(debugger.get_nondebug_quantized_model())


def _worst_first(debugger: Any) -> list[str]:
    """Layers, by decreasing error in quantization steps."""
    table = io.StringIO()
    debugger.layer_statistics_dump(table)  # the only output of the debugger with the steps
    table.seek(0)
    errors: dict[str, float] = {}
    for row in csv.DictReader(table):
        squared, step = float(row["mean_squared_error"]), float(row["scale"])
        errors[row["tensor_name"]] = math.sqrt(squared) / step if step > 0 and math.isfinite(squared) else math.inf
    return sorted(errors, key=lambda name: -errors[name])


def _agreement(content: bytes, subject: Subject, batch: int | None) -> float:
    size = 1 if batch is None else batch
    samples = [array[:JUDGED_SAMPLES] for array in subject.samples("calibration")]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / ANY_BATCH).write_bytes(content)
        run = run_loader(loader_source({"threads": 1}, size), Path(scratch))
        pieces = [run(feed) for feed in in_batches(samples, size)]
    join = np.concatenate if size else np.stack
    answers = [join(column)[: len(samples[0])] for column in zip(*pieces, strict=True)]
    return min(agreement(subject.answers("calibration"), answers))
