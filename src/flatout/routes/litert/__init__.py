"""LiteRT (TensorFlow Lite): one flat file and a small runtime with XNNPACK's kernels, for servers and phones.

In float32, with float16 weights, with int8 weights (`dynamic`: the runtime quantizes activations), in int8 throughout
after calibration, and in int8 except for the layers whose results suffer most (`mixed`). Inputs and outputs keep the
types of the model in all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.model.errors import ArtefactUnreadable
from flatout.routes._route import Contents, End, Precision, Route, Setting
from flatout.subject import Subject

ANY_BATCH = "model.tflite"
SHAPES = "shapes.json"
"""Whether each output has a row for each sample, so that samples may be answered in pieces."""

LARGEST_OPEN = 8
"""So many interpreters for other numbers of samples a loader keeps."""


def file_for(batch: int) -> str:
    return f"model-b{batch}.tflite"


class Float32(Route):
    name = "litert-fp32"
    family = "LiteRT"
    format = "LiteRT"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages = ("ai_edge_litert",)
    accepts = ".tflite"
    opens_later = True
    keeps_conversion = True

    def skip_reason(self, subject: Subject) -> str | None:
        if any(one.dtype == "str" for one in subject.inputs):
            return "LiteRT's kernels do not accept strings"
        return None

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        return [{"threads": count} for count in dict.fromkeys((cores, 1))]

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes.litert import convert

        convert.convert(subject, directory, self.precision)

    def inspect(self, directory: Path) -> Contents:
        from flatout.routes.litert import contents

        return contents.inspect_file(_first_file(directory))

    def ends(self, directory: Path) -> tuple[Sequence[End], Sequence[End]]:
        from flatout.routes.litert import contents

        return contents.ends(_first_file(directory))

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source(setting, batch)


class Float16(Float32):
    name = "litert-fp16"
    precision = "float16"
    equivalence = "precision"
    order = 3


class Dynamic(Float32):
    name = "litert-dynamic"
    precision = "int8-weights"
    equivalence = "precision"
    order = 3


class Int8(Float32):
    name = "litert-int8"
    precision = "int8"
    equivalence = "precision"
    needs_data = True
    order = 2


class Mixed(Int8):
    name = "litert-int8-mixed"
    order = 4

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes.litert import mixed

        mixed.convert(subject, directory)


def _first_file(directory: Path) -> Path:
    files = sorted(directory.glob("*.tflite"))
    if not files:
        raise ArtefactUnreadable(
            f"There is no .tflite file in {directory}: it is not an artefact of this route. Make it again."
        )
    return files[0]


def loader_source(setting: Setting, batch: int) -> str:
    """Inputs and outputs are matched by their order in the file: the converter keeps the order of the function's.

    Any number of samples is answered: by a file for any batch, or in pieces of the size that a file is for.
    """
    return f'''\
import json
import threading
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter


def load(directory, batch={batch}, threads={int(setting.get("threads", 1))}):
    """A function from a list of arrays to a list of arrays; for any number of samples, best for `batch` of them."""
    directory = Path(directory)
    files = {{int(path.stem[len("model-b"):]): path for path in directory.glob("model-b*.tflite")}}
    facts = directory / "{SHAPES}"
    by_rows = json.loads(facts.read_text())["rows"] if facts.exists() else True
    if files and batch not in files:
        batch = max([size for size in files if size <= batch], default=min(files))
    others, opening = {{}}, threading.Lock()

    def answer_others(arrays):
        size = len(arrays[0])
        if any(len(array) != size for array in arrays):
            raise ValueError(f"the inputs have {{', '.join(str(len(array)) for array in arrays)}} samples")
        if not by_rows and (files or not size):
            raise ValueError(f"this model takes {{batch}} samples at a time, not {{size}}")
        if not size:  # any samples tell the shapes and types of the answers
            zeros = [np.zeros([batch, *array.shape[1:]], array.dtype) for array in arrays]
            return [column[:0] for column in answer(zeros)]
        if not files:
            with opening:  # each has memory of its own: the one that was not used for longest goes
                found = others.pop(size, None) or open_file(directory / "{ANY_BATCH}", size, threads, answer_others)
                others[size] = found
                if len(others) > {LARGEST_OPEN}:
                    del others[next(iter(others))]
            return found(arrays)
        pieces = []
        for start in range(0, size, batch):
            part = [array[start : start + batch] for array in arrays]
            missing = batch - len(part[0])
            if missing:
                part = [np.concatenate([one, np.repeat(one[-1:], missing, axis=0)]) for one in part]
            pieces.append(answer(part))
        return [np.concatenate(column)[:size] for column in zip(*pieces)]

    answer = open_file(files.get(batch, directory / "{ANY_BATCH}"), batch, threads, answer_others)
    return answer


def open_file(path, batch, threads, answer_others):
    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    inputs = interpreter.get_input_details()
    for one in inputs:
        if batch and one["shape"][0] != batch:
            interpreter.resize_tensor_input(one["index"], [batch, *one["shape"][1:]])
    interpreter.allocate_tensors()
    arguments = [one["index"] for one in inputs]
    results = [one["index"] for one in interpreter.get_output_details()]
    set_tensor, invoke, get_tensor = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor
    first, last, lock = arguments[0], results[0], threading.Lock()  # an interpreter has room for one call

    def run(arrays):
        if batch and len(arrays[0]) != batch:
            return answer_others(arrays)
        with lock:
            for index, array in zip(arguments, arrays):
                set_tensor(index, array)
            invoke()
            return [get_tensor(index) for index in results]

    def run_single(arrays):  # loops would cost some microseconds
        if batch and len(arrays[0]) != batch:
            return answer_others(arrays)
        with lock:
            set_tensor(first, arrays[0])
            invoke()
            return [get_tensor(last)]

    return run_single if len(arguments) == len(results) == 1 else run
'''


ROUTES = (Float32(), Float16(), Dynamic(), Int8(), Mixed())
