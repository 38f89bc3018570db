"""The int8 model as a LiteRT file: ranges come from the trained rounding layers, nothing is calibrated again.

The file is run and held against the Keras model before it is handed over. The converter works in a process of its
own: it is native code that may end its process, and it leaks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, ToolMissing
from flatout.optimize.compress import checks
from flatout.optimize.compress.quantize import Array, served
from flatout.optimize.compress.structure import graph

STEPS_APART = 3.0
"""How many steps of the output's quantization file and model may be apart in the mean. Each rounds as the other does,
except where a value lies between two levels and float rounding decides; such a flip travels on."""


@dataclass(frozen=True)
class Written:
    """A file that was run: how far it is from the model, and how often it decides alike."""

    path: Path
    bytes: int
    apart: float
    """Mean difference of outputs, as a share of their spread."""
    alike: float
    """Share of samples with the same largest output; 1 where outputs are single numbers."""
    int8_tensors: int


def write(model: Any, path: str | os.PathLike[str], inputs: list[Array], *, batch: int | None = None) -> Written:
    """Write the model that `quantize` gave as int8, and check the file on these inputs. Batch None: any."""
    plain = served(model)
    target = Path(path)
    with tempfile.TemporaryDirectory() as scratch:
        save(plain, Path(scratch) / "saved", batch)
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(Path(scratch) / "saved"), str(target)], capture_output=True, text=True
        )
    if done.returncode or not target.exists():
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise CompressionFailed(f"The LiteRT converter failed: {last[:500]}")
    expected = checks.outputs(model, inputs)
    found, int8 = run(target, inputs)
    return agree(target, expected, found, int8)


def save(model: Any, directory: Path, batch: int | None) -> None:
    """A SavedModel with one signature of static shape."""
    import tensorflow as tf
    from keras import tree

    functional = graph.functional(model)
    specs = [
        tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, name=f"in{place}")
        for place, tensor in enumerate(functional.inputs)
    ]

    def serve(*given: Any) -> Any:
        answer = model(tree.pack_sequence_as(functional._inputs_struct, list(given)), training=False)
        return {f"out{place}": part for place, part in enumerate(tree.flatten(answer))}

    module = tf.Module()
    module.kept = model.variables
    tf.saved_model.save(
        module, str(directory), signatures=tf.function(serve, autograph=False).get_concrete_function(*specs)
    )


def convert(directory: Path, target: Path, *, int8: bool = True) -> None:
    """In a process of its own: SavedModel → LiteRT; int8 inside where there are ranges, float at the ends."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    loaded = tf.saved_model.load(str(directory))
    frozen = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
    target.write_bytes(converter.convert())


def interpreter(path: Path, batch: int | None = None) -> Any:
    """The file, opened; an open batch is set to `batch`."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ToolMissing("ai-edge-litert is not installed: pip install flatout[backends].") from error
    opened = Interpreter(model_path=str(path), num_threads=os.cpu_count())
    for entry in opened.get_input_details():
        if batch is not None and entry["shape_signature"][0] == -1:
            opened.resize_tensor_input(entry["index"], [batch, *entry["shape"][1:]])
    opened.allocate_tensors()
    return opened


def run(path: Path, inputs: list[Array]) -> tuple[list[Array], int]:
    """(outputs for all inputs, number of int8 tensors in the file)."""
    opened = interpreter(path, min(len(inputs[0]), 64))
    entries = sorted(opened.get_input_details(), key=lambda entry: entry["name"])
    exits = opened.get_output_details()
    size = int(entries[0]["shape"][0])
    rows: list[list[Array]] = []
    for start in range(0, len(inputs[0]) - size + 1, size):
        for entry, array in zip(entries, inputs, strict=True):
            opened.set_tensor(entry["index"], array[start : start + size].astype(entry["dtype"]))
        opened.invoke()
        rows.append([np.array(opened.get_tensor(entry["index"])) for entry in exits])
    outputs = [np.concatenate([row[place] for row in rows]).astype(np.float64) for place in range(len(exits))]
    return outputs, sum(entry["dtype"] == np.int8 for entry in opened.get_tensor_details())


def caller(path: Path, batch: int = 1, seed: int = 0) -> Callable[[], Any]:
    """One call of a file on random inputs, to be timed."""
    opened = interpreter(path, batch)
    generator = np.random.default_rng(seed)
    entries, exits = opened.get_input_details(), opened.get_output_details()
    given = [generator.random(entry["shape"]).astype(entry["dtype"]) for entry in entries]

    def call() -> Any:
        for entry, array in zip(entries, given, strict=True):
            opened.set_tensor(entry["index"], array)
        opened.invoke()
        return [opened.get_tensor(entry["index"]) for entry in exits]

    return call


def agree(path: Path, expected: list[Array], found: list[Array], int8: int) -> Written:
    by_shape = sorted(range(len(found)), key=lambda place: found[place].shape)
    theirs = sorted(range(len(expected)), key=lambda place: expected[place].shape)
    apart, alike = 0.0, 1.0
    for here, there in zip(by_shape, theirs, strict=True):
        one, other = expected[there][: len(found[here])], found[here]
        if one.shape != other.shape:
            raise CompressionFailed(f"{path.name} gives outputs of shape {other.shape}, the model {one.shape}.")
        levels = (one.max() - min(one.min(), 0.0)) / 255
        apart = max(apart, float(np.abs(one - other).mean() / max(levels, 1e-12)))
        if one.ndim > 1 and one.shape[-1] > 1:
            alike = min(alike, float((one.argmax(-1) == other.argmax(-1)).mean()))
    if apart > STEPS_APART or not np.isfinite(apart):
        raise CompressionFailed(
            f"{path.name} is {apart:.1f} steps of int8 apart from the model in the mean ({STEPS_APART} are allowed): "
            "it does not compute what was trained."
        )
    return Written(path, path.stat().st_size, apart, alike, int8)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), int8="float" not in sys.argv[3:])
