"""OpenVINO: the model as an IR, in float32, in bfloat16 or float16 where the processor has it, or in 8 bits.

OpenVINO computes in bfloat16 (AMX, AVX-512 BF16) or float16 (ARM) by itself where the processor can: the float32 route
tells it not to, so that its row is what it says. What is run is read from the compiled model, node by node.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from flatout.environment.machine import cpu_flags
from flatout.model.case import Equivalence
from flatout.routes import _onnx_convert
from flatout.routes._loaders import only_if
from flatout.routes._route import Inside, Precision, Route, Setting
from flatout.subject.subject import Subject

FILE = "model.xml"
FEW = 8
"""Constants of at most so many elements are not weights."""
HEAVY = ("Convolution", "Deconvolution", "FullyConnected", "MatMul", "RNNSeq", "RNNCell", "ScaledDotProductAttention")
"""Kinds of nodes, as the compiled model names them, that carry the time."""
RANKED = 32
"""Layers that NNCF's accuracy control may have to rank."""
NEEDS = {"bf16": {"amx_bf16", "avx512_bf16"}, "f16": {"asimdhp"}}
"""Types of OpenVINO's on a CPU, and the features of a processor of which each needs one."""
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "u8": "int8"}


class OpenVino(Route):
    name: ClassVar[str] = "openvino-fp32"
    family: ClassVar[str] = "OpenVINO"
    format: ClassVar[str] = "OpenVINO IR"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages: ClassVar[tuple[str, ...]] = ("openvino", "onnx", "tf2onnx")
    takes: ClassVar[str] = ".onnx"
    rest: ClassVar[tuple[str, ...]] = ("f32",)
    """What is not quantized may be computed in these types, the most promising first."""

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        types = [rest for rest in self.rest if computable(rest)]
        return [
            {"threads": cores, "rest": rest, "streams": count} for count in _streams(subject, cores) for rest in types
        ]

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        openvino.save_model(read(subject), directory / FILE, compress_to_fp16=False)

    def adopt(self, given: Path, directory: Path) -> None:
        import openvino

        report_nothing()
        openvino.save_model(openvino.convert_model(given), directory / FILE, compress_to_fp16=False)

    def inspect(self, directory: Path) -> Inside:
        import openvino

        model = openvino.Core().read_model(directory / FILE)
        constants = [node.data for node in model.get_ops() if node.get_type_name() == "Constant"]
        weights = {one.ctypes.data: one for one in constants if one.size > FEW}.values()  # shared ones lie there once
        rest = next(iter(self.rest))
        return Inside(
            weights=sum(one.size for one in weights),
            weight_bytes=sum(one.nbytes for one in weights),
            computes=computes(openvino.compile_model(model, "CPU", configuration(1, rest))),
        )

    def loader(self, setting: Setting, batch: int) -> str:
        return source(setting, batch)


class OpenVinoBfloat16(OpenVino):
    name: ClassVar[str] = "openvino-bf16"
    precision: ClassVar[Precision] = "bfloat16"
    equivalence: ClassVar[Equivalence] = "precision"
    rest: ClassVar[tuple[str, ...]] = ("bf16",)

    def hopeless(self, subject: Subject) -> str | None:
        return None if computable(self.rest[0]) else f"this processor has no instructions for {self.precision}"

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        openvino.save_model(read(subject), directory / FILE, compress_to_fp16=True)


class OpenVinoFloat16(OpenVinoBfloat16):
    name: ClassVar[str] = "openvino-fp16"
    precision: ClassVar[Precision] = "float16"
    rest: ClassVar[tuple[str, ...]] = ("f16",)


class OpenVinoInt8(OpenVino):
    name: ClassVar[str] = "openvino-int8"
    precision: ClassVar[Precision] = "int8"
    equivalence: ClassVar[Equivalence] = "precision"
    packages: ClassVar[tuple[str, ...]] = (*OpenVino.packages, "nncf")
    needs_data: ClassVar[bool] = True
    turn: ClassVar[int] = 2
    rest: ClassVar[tuple[str, ...]] = ("bf16", "f16", "f32")

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        from flatout.routes import _openvino_quantize

        model = _openvino_quantize.quantize(read(subject), subject)
        openvino.save_model(model, directory / FILE, compress_to_fp16=False)


class OpenVinoMixed(OpenVinoInt8):
    name: ClassVar[str] = "openvino-int8-mixed"
    turn: ClassVar[int] = 4

    def hopeless(self, subject: Subject) -> str | None:
        if subject.recurrent:
            return "NNCF cannot hand layers of a recurrent model back to float"
        count = sum(many for name, many in subject.ops.items() if "Conv" in name or "MatMul" in name)
        if count > RANKED:
            return f"NNCF compiles the model once for each of {count} layers to rank them, which takes minutes"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        from flatout.routes import _openvino_quantize

        model = _openvino_quantize.mixed(read(subject), subject)
        openvino.save_model(model, directory / FILE, compress_to_fp16=False)


def read(subject: Subject) -> Any:
    """The model through ONNX, where recurrent layers are operations and not loops of tensor lists."""
    import openvino

    report_nothing()
    return openvino.convert_model(_onnx_convert.of(subject))


def report_nothing() -> None:
    """OpenVINO's converter and NNCF report their use to their maker over the network, except where CI is set."""
    os.environ["CI"] = "true"  # in a process that only converts


def configuration(threads: int, rest: str, streams: int = 1) -> dict[str, Any]:
    hint = {"PERFORMANCE_HINT": "LATENCY"} if streams == 1 else {"NUM_STREAMS": streams}
    return {**hint, "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": rest}


def computes(compiled: Any) -> dict[str, int]:
    """How many heavy nodes of a compiled model work in each type."""
    found: Counter[str] = Counter()
    for node in compiled.get_runtime_model().get_ops():
        facts = node.get_rt_info()
        if facts["layerType"].astype(str) in HEAVY:
            kind = facts["runtimePrecision"].astype(str).lower()
            found[TYPES.get(kind, kind)] += 1
    return dict(found)


def computable(kind: str) -> bool:
    """Whether the processor multiplies in this type rather than pretending to."""
    return kind not in NEEDS or not cpu_flags().isdisjoint(NEEDS[kind])


def _streams(subject: Subject, cores: int) -> list[int]:
    """One for all threads; or one for each core with its part of the batch, where none waits for the others."""
    rows = all(one.shape and one.shape[0] is None for one in subject.outputs)
    return [1, cores] if rows and cores > 1 and any(batch % cores == 0 for batch in subject.batches) else [1]


def source(setting: Setting, batch: int) -> str:
    streams = int(setting.get("streams", 1))
    parted = streams if batch and batch % streams == 0 else 1
    part = batch // parted
    options = configuration(int(setting["threads"]), str(setting["rest"]), parted)
    static = f"""
        # The batch that was measured; without this line any other can be served.
        model.reshape({{entry: [{part}, *list(entry.partial_shape)[1:]] for entry in model.inputs}})
    """
    return f'''\
from pathlib import Path

import numpy as np
import openvino


def load(directory, cache=None):
    """A function from a list of arrays to a list of arrays. `cache`: a directory that makes the next load faster."""
    core = openvino.Core()
    if cache is not None:
        core.set_property({{"CACHE_DIR": str(cache)}})
    model = core.read_model(Path(directory) / "{FILE}")
{only_if(batch, static)}\
    options = {options}
    compiled = core.compile_model(model, "CPU", options)
    outputs = range(len(model.outputs))
{PARTED.replace("STREAMS", str(parted)).replace("PART", str(part)) if parted > 1 else WHOLE}'''


WHOLE = """\
    request = compiled.create_infer_request()

    def run(inputs):
        request.infer(list(inputs), share_inputs=True)
        return [np.array(request.get_output_tensor(i).data) for i in outputs]

    return run
"""

PARTED = """\
    requests = [compiled.create_infer_request() for _ in range(STREAMS)]

    def run(inputs):
        for i, request in enumerate(requests):
            request.start_async([array[i * PART : (i + 1) * PART] for array in inputs], share_inputs=True)
        for request in requests:
            request.wait()
        return [np.concatenate([request.get_output_tensor(i).data for request in requests]) for i in outputs]

    return run
"""

ROUTES = (OpenVino(), OpenVinoBfloat16(), OpenVinoFloat16(), OpenVinoInt8(), OpenVinoMixed())
