"""ONNX Runtime: the model as an ONNX file, in float32, with 8-bit weights, or in 8 bits throughout.

Static quantization needs samples and helps convolutions. Dynamic quantization needs none and helps matrix products
and recurrent cells. Dynamic quantization turns a convolution into a ConvInteger, which has no fast kernel and is
several times slower than float. `mixed` keeps the layers in float whose results suffer most from 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.routes._onnx import convert
from flatout.routes._route import Contents, End, Precision, Route, Setting
from flatout.subject import Subject

FILE = "model.onnx"
SMALL = 8_000_000
"""With fewer parameters, one thread may be faster than several that wait for each other."""


class OnnxRuntime(Route):
    name: ClassVar[str] = "onnxruntime-fp32"
    family: ClassVar[str] = "ONNX Runtime"
    format: ClassVar[str] = "ONNX"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnx", "tf2onnx")
    accepts: ClassVar[str] = ".onnx"
    opens_later: ClassVar[bool] = True
    keeps_conversion: ClassVar[bool] = False
    """The float32 file is that of the subject, which is kept for all routes that begin with it."""

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        one_thread = [{"threads": 1}] if cores > 1 and subject.parameters < SMALL else []
        return [{"threads": cores}, *one_thread]

    def convert(self, subject: Subject, directory: Path) -> None:
        convert.copy_onnx_file(subject, directory / FILE)

    def inspect(self, directory: Path) -> Contents:
        from flatout.routes._onnx import contents

        return contents.inspect(directory / FILE)

    def ends(self, directory: Path) -> tuple[Sequence[End], Sequence[End]]:
        from flatout.routes._onnx import contents

        return contents.ends(directory / FILE)

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source(setting, batch)


class OnnxRuntimeInt8(OnnxRuntime):
    name: ClassVar[str] = "onnxruntime-int8"
    precision: ClassVar[Precision] = "int8"
    keeps_conversion: ClassVar[bool] = True
    equivalence: ClassVar[Equivalence] = "precision"
    needs_data: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def skip_reason(self, subject: Subject) -> str | None:
        if any("Conv" in name for name in subject.ops):
            return None
        if subject.recurrent:
            return "ONNX Runtime quantizes recurrent cells only dynamically"
        return None if any("MatMul" in name for name in subject.ops) else "there is nothing to quantize in the model"

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes._onnx import quantize

        quantize.quantize(convert.onnx_file(subject), directory / FILE, subject)


class OnnxRuntimeMixed(OnnxRuntimeInt8):
    name: ClassVar[str] = "onnxruntime-int8-mixed"
    order: ClassVar[int] = 4

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes._onnx import quantize

        quantize.quantize_mixed(convert.onnx_file(subject), directory / FILE, subject)


class OnnxRuntimeDynamic(OnnxRuntime):
    name: ClassVar[str] = "onnxruntime-dynamic"
    precision: ClassVar[Precision] = "int8-weights"
    keeps_conversion: ClassVar[bool] = True
    equivalence: ClassVar[Equivalence] = "precision"
    order: ClassVar[int] = 3

    def skip_reason(self, subject: Subject) -> str | None:
        if any("Conv" in name for name in subject.ops):
            return "dynamic quantization turns convolutions into ConvInteger, which is slower than float"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes._onnx import quantize

        quantize.quantize_dynamically(convert.onnx_file(subject), directory / FILE)


def loader_source(setting: Setting, batch: int) -> str:
    """The batch size that was measured is fixed in one session; a second one, made when it is needed, takes any."""
    return f'''\
from pathlib import Path

import onnxruntime


def load(directory, batch={batch}):
    """A function from a list of arrays to a list of arrays; for any number of samples, best for `batch` of them."""
    session = open_file(directory, batch)
    names = [entry.name for entry in session.get_inputs()]
    others = []

    def run(inputs):
        if batch and len(inputs[0]) != batch:
            if not others:
                others.append(open_file(directory, 0))
            return others[0].run(None, dict(zip(names, inputs)))
        return session.run(None, dict(zip(names, inputs)))

    return run


def open_file(directory, batch):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = {int(setting["threads"])}
    if batch:
        options.add_free_dimension_override_by_name("{convert.BATCH}", batch)
    return onnxruntime.InferenceSession(Path(directory) / "{FILE}", options, providers=["CPUExecutionProvider"])
'''


ROUTES = (OnnxRuntime(), OnnxRuntimeDynamic(), OnnxRuntimeInt8(), OnnxRuntimeMixed())
