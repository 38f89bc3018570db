"""ONNX Runtime: the model as an ONNX file, in float, with 8-bit weights, or with 8-bit convolutions and products.

Static quantization needs samples and pays for convolutions; dynamic quantization works without and pays for matrix
products and recurrent cells. Dynamic quantization of a convolution makes a ConvInteger, for which there is no fast
kernel: several times slower than float. `mixed` leaves the layers in float that 8 bits hurt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.routes import _onnx_convert
from flatout.routes._loaders import only_if
from flatout.routes._route import Inside, Precision, Route, Setting
from flatout.subject.subject import Subject

FILE = "model.onnx"
SMALL = 8_000_000
"""Parameters below which one thread may be faster than several that wait for each other."""


class OnnxRuntime(Route):
    name: ClassVar[str] = "onnxruntime-fp32"
    family: ClassVar[str] = "ONNX Runtime"
    format: ClassVar[str] = "ONNX"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnx", "tf2onnx")
    takes: ClassVar[str] = ".onnx"

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        alone = [{"threads": 1}] if cores > 1 and subject.parameters < SMALL else []
        return [{"threads": cores}, *alone]

    def convert(self, subject: Subject, directory: Path) -> None:
        _onnx_convert.copy(subject, directory / FILE)

    def inspect(self, directory: Path) -> Inside:
        from flatout.routes import _onnx_inside

        return _onnx_inside.inside(directory / FILE)

    def loader(self, setting: Setting, batch: int) -> str:
        return source(setting, batch)


class OnnxRuntimeInt8(OnnxRuntime):
    name: ClassVar[str] = "onnxruntime-int8"
    precision: ClassVar[Precision] = "int8"
    equivalence: ClassVar[Equivalence] = "precision"
    needs_data: ClassVar[bool] = True
    turn: ClassVar[int] = 2

    def hopeless(self, subject: Subject) -> str | None:
        if any("Conv" in name for name in subject.ops):
            return None
        if subject.recurrent:
            return "ONNX Runtime quantizes recurrent cells as they come only"
        return None if any("MatMul" in name for name in subject.ops) else "there is nothing in it to quantize"

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes import _onnx_quantize

        _onnx_quantize.quantize(_onnx_convert.of(subject), directory / FILE, subject)


class OnnxRuntimeMixed(OnnxRuntimeInt8):
    name: ClassVar[str] = "onnxruntime-int8-mixed"
    turn: ClassVar[int] = 4

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes import _onnx_quantize

        _onnx_quantize.mixed(_onnx_convert.of(subject), directory / FILE, subject)


class OnnxRuntimeDynamic(OnnxRuntime):
    name: ClassVar[str] = "onnxruntime-dynamic"
    precision: ClassVar[Precision] = "int8-weights"
    equivalence: ClassVar[Equivalence] = "precision"
    turn: ClassVar[int] = 3

    def hopeless(self, subject: Subject) -> str | None:
        if any("Conv" in name for name in subject.ops):
            return "dynamic quantization makes a ConvInteger of a convolution, which is slower than float"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        from flatout.routes import _onnx_quantize

        _onnx_quantize.dynamic(_onnx_convert.of(subject), directory / FILE)


def source(setting: Setting, batch: int) -> str:
    static = f'''
        # The batch that was measured; without this line any other can be served.
        options.add_free_dimension_override_by_name("{_onnx_convert.BATCH}", {batch})
    '''
    return f'''\
from pathlib import Path

import onnxruntime


def load(directory):
    """A function from a list of arrays to a list of arrays."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = {int(setting["threads"])}
{only_if(batch, static)}\
    session = onnxruntime.InferenceSession(Path(directory) / "{FILE}", options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs)))
'''


ROUTES = (OnnxRuntime(), OnnxRuntimeDynamic(), OnnxRuntimeInt8(), OnnxRuntimeMixed())
