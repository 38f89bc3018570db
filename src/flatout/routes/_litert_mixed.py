"""int8, but for the layers that it hurts: those go back to float, the worst first, until the answers agree.

TensorFlow's quantization debugger tells each layer's error against its own float result, in steps of its quantization;
a layer whose values are spread evenly over them is off by 0.29 steps. Layers go back in doubling numbers, judged by how
well the calibration samples' answers agree with the original's. Held-out samples are not looked at.
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
from flatout.model.errors import FlatoutError
from flatout.routes._litert_convert import calibration, configured, write
from flatout.routes._route import Needless, opened
from flatout.routes.litert import ANY, source
from flatout.subject.subject import Subject, in_batches

ENOUGH = 0.995
"""Agreement with the original at which no further layer goes back."""
LOOKED_AT = 16
JUDGED_BY = 128


def convert(subject: Subject, directory: Path) -> None:
    floats: list[str] = []
    write(subject, directory, lambda converter, batch: _made(converter, subject, batch, floats))
    (directory / "float_layers.txt").write_text("".join(f"{name}\n" for name in floats))


def _made(converter: Any, subject: Subject, batch: int | None, floats: list[str]) -> bytes:
    import tensorflow as tf

    configured(converter, subject, "int8", batch)
    debugger = tf.lite.experimental.QuantizationDebugger(
        converter=converter, debug_dataset=lambda: calibration(subject, batch, LOOKED_AT)
    )
    if floats:  # found for another batch
        return _without(debugger, floats)
    content = bytes(debugger.get_nondebug_quantized_model())
    if _agreement(content, subject, batch) >= ENOUGH:
        raise Needless("nothing to hand back to float: the answers of litert-int8 agree with the original's")
    debugger.run()
    worst = _worst_first(debugger)
    count = 1
    while True:
        floats[:] = worst[:count]
        content = _without(debugger, floats)
        if _agreement(content, subject, batch) >= ENOUGH:
            return content
        if count >= len(worst) // 2:
            raise FlatoutError(f"With {count} of {len(worst)} layers in float the answers still do not agree.")
        count *= 2


def _without(debugger: Any, floats: list[str]) -> bytes:
    import tensorflow as tf

    debugger.options = tf.lite.experimental.QuantizationDebugOptions(denylisted_nodes=floats)
    return bytes(debugger.get_nondebug_quantized_model())


def _worst_first(debugger: Any) -> list[str]:
    """Layers by error in steps of their quantization."""
    table = io.StringIO()
    debugger.layer_statistics_dump(table)  # the only place where it tells the steps
    table.seek(0)
    errors: dict[str, float] = {}
    for row in csv.DictReader(table):
        squared, step = float(row["mean_squared_error"]), float(row["scale"])
        errors[row["tensor_name"]] = math.sqrt(squared) / step if step > 0 and math.isfinite(squared) else math.inf
    return sorted(errors, key=lambda name: -errors[name])


def _agreement(content: bytes, subject: Subject, batch: int | None) -> float:
    size = 1 if batch is None else batch
    samples = [array[:JUDGED_BY] for array in subject.samples("calibration")]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / ANY).write_bytes(content)
        run = opened(source({"threads": 1}, size), Path(scratch))
        pieces = [run(feed) for feed in in_batches(samples, size)]
    join = np.concatenate if size else np.stack
    answers = [join(column)[: len(samples[0])] for column in zip(*pieces, strict=True)]
    return min(agreement(subject.answers("calibration"), answers))
