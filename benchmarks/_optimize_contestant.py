"""One way to serve a model, alive in a process of its own: answers on a pipe, runs when it is told to.

    python benchmarks/_optimize_contestant.py DIRECTORY BATCH KIND ARGUMENT…

Words on standard input: `check` gives the accuracy on the samples that no quantizer saw, `go MS` calls the model again
and again for about so long and gives the median milliseconds of a call.
"""

from __future__ import annotations

import json
import os
import runpy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[Any], Any]


def tensorflow(directory: Path, batch: int, kind: str) -> Call:
    import keras
    import tensorflow as tf

    model = keras.saving.load_model(directory / "model.keras", compile=False)
    function = tf.function(lambda x: model(x, training=False), jit_compile=kind == "xla")
    return lambda x: function(tf.constant(x)).numpy()


def saved_model(directory: Path, batch: int, name: str) -> Call:
    import tensorflow as tf

    loaded = tf.saved_model.load(directory / f"{batch}-{name}")
    function = loaded.signatures["serving_default"]
    (key,) = function.structured_input_signature[1]
    return lambda x: next(iter(function(**{key: tf.constant(x)}).values())).numpy()


def litert(directory: Path, batch: int, name: str, threads: str) -> Call:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(directory / f"{batch}-{name}.tflite"), num_threads=int(threads))
    interpreter.allocate_tensors()
    (entry,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()

    def call(x: Any) -> Any:
        interpreter.set_tensor(entry["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(result["index"])

    return call


def onnxruntime(directory: Path, batch: int, name: str, threads: str) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(directory / f"{batch}-{name}.onnx", options, ["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def openvino(directory: Path, batch: int, name: str, precision: str) -> Call:
    import openvino

    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    compiled = openvino.compile_model(directory / f"{batch}-{name}.xml", "CPU", options)
    return lambda x: compiled(x)[0]


def flatout(directory: Path, batch: int, artefact: str) -> Call:
    """The artefact with the loader that was handed over with it: nothing of flatout runs here."""
    run = runpy.run_path(str(Path(artefact) / "load.py"))["load"](artefact)
    return lambda x: run([x])[0]


KINDS: dict[str, Callable[..., Call]] = {
    kind.__name__: kind for kind in (tensorflow, saved_model, litert, onnxruntime, openvino, flatout)
}


def accuracy(call: Call, samples: Any, labels: Any, batch: int) -> float:
    right = 0
    count = len(samples) // batch * batch
    for start in range(0, count, batch):
        right += int((call(samples[start : start + batch]).argmax(-1) == labels[start : start + batch]).sum())
    return right / count


def timed(call: Call, sample: Any, milliseconds: float) -> float:
    call(sample)  # whoever ran before has left its data in the caches
    times: list[float] = []
    until = time.perf_counter() + milliseconds / 1000
    while len(times) < 3 or (time.perf_counter() < until and len(times) < 20_000):
        began = time.perf_counter()
        call(sample)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a runtime prints is not an answer
    directory, batch, kind, *arguments = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    with np.load(directory / "test.npz") as data:
        samples, labels = data["x"], data["y"]
    call = KINDS[kind](directory, batch, *arguments)
    sample = samples[:batch]
    call(sample)
    channel.write(json.dumps("ready") + "\n")
    for line in sys.stdin:
        word, *rest = line.split()
        answer = accuracy(call, samples, labels, batch) if word == "check" else timed(call, sample, float(rest[0]))
        channel.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
