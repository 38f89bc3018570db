"""Writes the int8 model as a LiteRT file. The ranges come from the rounding layers, so nothing is calibrated again.

The file is run and compared with the Keras model before it is returned. The converter runs in a child process: it is
native code that may abort its process, and it leaks memory.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, ToolMissing
from flatout.optimize.compress import checks
from flatout.optimize.compress.quantize import Array, for_serving
from flatout.optimize.compress.structure import graph

MAX_STEPS = 3.0
"""Largest mean difference of file and model, in quantization steps of the output. Both round alike, except where a
value is between two levels and float rounding decides; such a difference propagates."""


@dataclass(frozen=True)
class WrittenFile:
    """A file that was run: how far its outputs are from the model's, and how often they agree."""

    path: Path
    bytes: int
    apart: float
    """Mean difference of outputs, in quantization steps."""
    alike: float
    """Share of samples with the same largest output; 1 if outputs are single numbers."""
    int8_tensors: int


def write(model: Any, path: str | os.PathLike[str], inputs: list[Array], *, batch: int | None = None) -> WrittenFile:
    """Write the result of `quantize` as an int8 file, and check the file on these inputs. Batch None: any size."""
    plain = for_serving(model)
    target = Path(path)
    with made_anew(target):
        with tempfile.TemporaryDirectory() as scratch:
            saved = Path(scratch) / "saved"
            save_model(plain, saved, batch)
            command = [sys.executable, "-m", __name__, str(saved), str(target)]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not target.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise CompressionFailed(f"The LiteRT converter failed: {last[:500]}")
        expected = checks.outputs(model, inputs)
        found, int8 = run_file(target, inputs)
        return check_file(target, expected, found, int8)


@contextlib.contextmanager
def made_anew(target: Path) -> Iterator[None]:
    """An earlier file is not this model, and one that fails its check is not left there."""
    target.unlink(missing_ok=True)
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def numbered(what: str, index: int) -> str:
    """A name whose order in the alphabet is that of the numbers: TensorFlow sorts the ends of a signature."""
    return f"{what}{index:04}"


def save_model(model: Any, directory: Path, batch: int | None) -> None:
    """Write a SavedModel with one signature of static shape."""
    import tensorflow as tf
    from keras import tree

    functional = graph.functional(model)
    specs = [
        tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, name=numbered("in", index))
        for index, tensor in enumerate(functional.inputs)
    ]

    def serve(*given: Any) -> Any:
        answer = model(tree.pack_sequence_as(functional._inputs_struct, list(given)), training=False)
        return {numbered("out", index): part for index, part in enumerate(tree.flatten(answer))}

    module = tf.Module()
    module.kept = model.variables
    tf.saved_model.save(
        module, str(directory), signatures=tf.function(serve, autograph=False).get_concrete_function(*specs)
    )


def convert(directory: Path, target: Path, *, int8: bool = True) -> None:
    """Convert a SavedModel to LiteRT, in the child: int8 inside where there are ranges, float inputs and outputs."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    loaded = tf.saved_model.load(str(directory))
    frozen = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
    target.write_bytes(converter.convert())


def open_file(path: Path, batch: int | None = None) -> Any:
    """An interpreter of the file; an open batch dimension is set to `batch`."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ToolMissing("ai-edge-litert is not installed: pip install flatout[backends].") from error
    interpreter = Interpreter(model_path=str(path), num_threads=os.cpu_count())
    for entry in interpreter.get_input_details():
        if batch is not None and entry["shape_signature"][0] == -1:
            interpreter.resize_tensor_input(entry["index"], [batch, *entry["shape"][1:]])
    interpreter.allocate_tensors()
    return interpreter


def run_file(path: Path, inputs: list[Array]) -> tuple[list[Array], int]:
    """(outputs for all inputs, number of int8 tensors in the file)."""
    interpreter = open_file(path, min(len(inputs[0]), 64))
    entries = sorted(interpreter.get_input_details(), key=lambda entry: entry["name"])
    exits = interpreter.get_output_details()
    size = int(entries[0]["shape"][0])
    rows: list[list[Array]] = []
    for start in range(0, len(inputs[0]) - size + 1, size):
        for entry, array in zip(entries, inputs, strict=True):
            interpreter.set_tensor(entry["index"], array[start : start + size].astype(entry["dtype"]))
        interpreter.invoke()
        rows.append([np.array(interpreter.get_tensor(entry["index"])) for entry in exits])
    outputs = [np.concatenate([row[i] for row in rows]).astype(np.float64) for i in range(len(exits))]
    return outputs, sum(entry["dtype"] == np.int8 for entry in interpreter.get_tensor_details())


def caller(path: Path, batch: int = 1, seed: int = 0) -> Callable[[], Any]:
    """A function that calls a file on random inputs, for timing."""
    interpreter = open_file(path, batch)
    generator = np.random.default_rng(seed)
    entries, exits = interpreter.get_input_details(), interpreter.get_output_details()
    given = [generator.random(entry["shape"]).astype(entry["dtype"]) for entry in entries]

    def call() -> Any:
        for entry, array in zip(entries, given, strict=True):
            interpreter.set_tensor(entry["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(entry["index"]) for entry in exits]

    return call


def check_file(path: Path, expected: list[Array], found: list[Array], int8: int) -> WrittenFile:
    by_shape = sorted(range(len(found)), key=lambda index: found[index].shape)
    theirs = sorted(range(len(expected)), key=lambda index: expected[index].shape)
    apart, alike = 0.0, 1.0
    for here, there in zip(by_shape, theirs, strict=True):
        one, other = expected[there][: len(found[here])], found[here]
        if one.shape != other.shape:
            raise CompressionFailed(f"{path.name} has outputs of shape {other.shape}, the model {one.shape}.")
        levels = (one.max() - min(one.min(), 0.0)) / 255
        off = float(np.abs(one - other).mean() / max(levels, 1e-12))
        apart = max(apart, off if np.isfinite(off) else float("inf"))  # NaN is larger than nothing
        if one.ndim > 1 and one.shape[-1] > 1:
            alike = min(alike, float((one.argmax(-1) == other.argmax(-1)).mean()))
    if apart > MAX_STEPS or not np.isfinite(apart):
        raise CompressionFailed(
            f"{path.name} differs from the model by {apart:.1f} int8 steps in the mean ({MAX_STEPS} are allowed): it "
            "does not compute what was trained."
        )
    return WrittenFile(path, path.stat().st_size, apart, alike, int8)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), int8="float" not in sys.argv[3:])
