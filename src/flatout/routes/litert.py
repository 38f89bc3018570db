"""LiteRT (TensorFlow Lite): one flat file, a small runtime, XNNPACK's kernels; at home on servers as well as on phones.

In float32, with float16 weights, with int8 weights (`dynamic`: the runtime quantizes activations as they come), in
int8 throughout after calibration, and in int8 but for the layers that it hurts (`mixed`). Inputs and outputs stay as
the model has them in all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.model.errors import FlatoutError
from flatout.routes._route import Inside, Precision, Route, Setting
from flatout.subject.subject import Subject

ANY = "model.tflite"


def file_for(batch: int) -> str:
    return f"model-b{batch}.tflite"


class Float32(Route):
    name = "litert-fp32"
    family = "LiteRT"
    format = "LiteRT"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages = ("ai_edge_litert",)
    takes = ".tflite"

    def hopeless(self, subject: Subject) -> str | None:
        if any(one.dtype == "str" for one in subject.inputs):
            return "LiteRT's kernels do not take strings"
        return None

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        return [{"threads": count} for count in dict.fromkeys((cores, 1))]

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes import _litert_convert

        _litert_convert.convert(subject, directory, self.precision)

    def inspect(self, directory: Path) -> Inside:
        from flatout.routes import _litert_inside

        return _litert_inside.inspect(_first(directory))

    def loader(self, setting: Setting, batch: int) -> str:
        return source(setting, batch)


class Float16(Float32):
    name = "litert-fp16"
    precision = "float16"
    equivalence = "precision"
    turn = 3


class Dynamic(Float32):
    name = "litert-dynamic"
    precision = "int8-weights"
    equivalence = "precision"
    turn = 3


class Int8(Float32):
    name = "litert-int8"
    precision = "int8"
    equivalence = "precision"
    needs_data = True
    turn = 2


class Mixed(Int8):
    name = "litert-int8-mixed"
    turn = 4

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes import _litert_mixed

        _litert_mixed.convert(subject, directory)


def _first(directory: Path) -> Path:
    files = sorted(directory.glob("*.tflite"))
    if not files:
        raise FlatoutError(f"There is no .tflite file in {directory}.")
    return files[0]


def source(setting: Setting, batch: int) -> str:
    """Inputs and outputs by their place in the file: the converter keeps the order of the function's."""
    return f'''\
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter


def load(directory, batch={batch}, threads={int(setting.get("threads", 1))}):
    """A function from a list of arrays to a list of arrays."""
    own = Path(directory) / f"model-b{{batch}}.tflite"
    path = own if own.exists() else Path(directory) / "{ANY}"
    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    inputs = interpreter.get_input_details()
    for one in inputs:
        if batch and one["shape"][0] != batch:
            interpreter.resize_tensor_input(one["index"], [batch, *one["shape"][1:]])
    interpreter.allocate_tensors()
    places = [one["index"] for one in inputs]
    results = [one["index"] for one in interpreter.get_output_details()]
    give, invoke, take = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor
    first, last = places[0], results[0]

    def run(arrays):
        for place, array in zip(places, arrays):
            give(place, array)
        invoke()
        return [take(place) for place in results]

    def run_plain(arrays):  # no loops: they cost some microseconds
        give(first, arrays[0])
        invoke()
        return [take(last)]

    return run_plain if len(places) == len(results) == 1 else run
'''


ROUTES = (Float32(), Float16(), Dynamic(), Int8(), Mixed())
