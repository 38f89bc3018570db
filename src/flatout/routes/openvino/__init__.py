"""OpenVINO: the model as an IR, in float32, in bfloat16 or float16 where the processor supports it, or in 8 bits.

OpenVINO computes in bfloat16 (AMX, AVX-512 BF16) or float16 (ARM) by default where the processor can. The float32 route
switches that off, so that its result is for float32. The type of each node is read from the compiled model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from flatout.environment.machine import cpu_flags
from flatout.model.case import Equivalence
from flatout.routes._onnx import convert
from flatout.routes._route import Contents, End, Precision, Route, Setting, lines_if
from flatout.subject import FEW_ELEMENTS, Subject

FILE = "model.xml"
HEAVY = ("Convolution", "Deconvolution", "FullyConnected", "MatMul", "RNNSeq", "RNNCell", "ScaledDotProductAttention")
"""Node types, by their names in the compiled model, that take most of the time."""
MAX_RANKED_LAYERS = 32
"""NNCF's accuracy control compiles the model once for each layer that it ranks."""
REQUIRED_CPU_FLAGS = {"bf16": {"amx_bf16", "avx512_bf16"}, "f16": {"asimdhp"}}
"""OpenVINO's reduced types, and the processor features of which each needs at least one."""
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "u8": "int8"}


class OpenVino(Route):
    name: ClassVar[str] = "openvino-fp32"
    family: ClassVar[str] = "OpenVINO"
    format: ClassVar[str] = "OpenVINO IR"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages: ClassVar[tuple[str, ...]] = ("openvino", "onnx", "tf2onnx")
    accepts: ClassVar[str] = ".onnx"
    opens_later: ClassVar[bool] = True
    keeps_conversion: ClassVar[bool] = True
    float_types: ClassVar[tuple[str, ...]] = ("f32",)
    """Types in which the nodes that are not quantized may be computed, the most promising first."""

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        types = [kind for kind in self.float_types if computable(kind)]
        return [
            {"threads": cores, "rest": kind, "streams": count} for count in _streams(subject, cores) for kind in types
        ]

    def _float_type(self) -> str:
        """The first that the processor computes in: asked for another, OpenVINO emulates it."""
        return next((kind for kind in self.float_types if computable(kind)), self.float_types[0])

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        openvino.save_model(read(subject), directory / FILE, compress_to_fp16=False)

    def import_file(self, path: Path, directory: Path) -> None:
        import openvino

        disable_telemetry()
        openvino.save_model(openvino.convert_model(path), directory / FILE, compress_to_fp16=False)

    def inspect(self, directory: Path) -> Contents:
        import openvino

        model = openvino.Core().read_model(directory / FILE)
        constants = [node.data for node in model.get_ops() if node.get_type_name() == "Constant"]
        weights = {one.ctypes.data: one for one in constants if one.size > FEW_ELEMENTS}.values()  # shared ones once

        return Contents(
            weights=sum(one.size for one in weights),
            weight_bytes=sum(one.nbytes for one in weights),
            computes=computes(openvino.compile_model(model, "CPU", configuration(1, self._float_type()))),
        )

    def ends(self, directory: Path) -> tuple[Sequence[End], Sequence[End]]:
        import openvino

        model = openvino.Core().read_model(directory / FILE)
        return [_end(one) for one in model.inputs], [_end(one) for one in model.outputs]

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source(setting, batch)


class OpenVinoBfloat16(OpenVino):
    name: ClassVar[str] = "openvino-bf16"
    precision: ClassVar[Precision] = "bfloat16"
    equivalence: ClassVar[Equivalence] = "precision"
    float_types: ClassVar[tuple[str, ...]] = ("bf16",)

    def skip_reason(self, subject: Subject) -> str | None:
        return None if computable(self.float_types[0]) else f"this processor has no instructions for {self.precision}"

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        openvino.save_model(read(subject), directory / FILE, compress_to_fp16=True)


class OpenVinoFloat16(OpenVinoBfloat16):
    name: ClassVar[str] = "openvino-fp16"
    precision: ClassVar[Precision] = "float16"
    float_types: ClassVar[tuple[str, ...]] = ("f16",)


class OpenVinoInt8(OpenVino):
    name: ClassVar[str] = "openvino-int8"
    precision: ClassVar[Precision] = "int8"
    equivalence: ClassVar[Equivalence] = "precision"
    packages: ClassVar[tuple[str, ...]] = (*OpenVino.packages, "nncf")
    needs_data: ClassVar[bool] = True
    order: ClassVar[int] = 2
    float_types: ClassVar[tuple[str, ...]] = ("bf16", "f16", "f32")

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        from flatout.routes.openvino import quantize

        model = quantize.quantize(read(subject), subject)
        openvino.save_model(model, directory / FILE, compress_to_fp16=False)


class OpenVinoMixed(OpenVinoInt8):
    name: ClassVar[str] = "openvino-int8-mixed"
    order: ClassVar[int] = 4

    def skip_reason(self, subject: Subject) -> str | None:
        if subject.recurrent:
            return "NNCF cannot return single layers of a recurrent model to float"
        count = sum(many for name, many in subject.ops.items() if "Conv" in name or "MatMul" in name)
        if count > MAX_RANKED_LAYERS:
            return f"NNCF compiles the model once for each of {count} layers to rank them, which takes minutes"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        import openvino

        from flatout.routes.openvino import quantize

        model = quantize.quantize_mixed(read(subject), subject)
        openvino.save_model(model, directory / FILE, compress_to_fp16=False)


def _end(port: Any) -> End:
    shape = tuple(one.get_length() if one.is_static else None for one in port.partial_shape)
    return End(port.any_name, port.element_type.to_dtype().name, shape)


def read(subject: Subject) -> Any:
    """The model, read through ONNX: there, recurrent layers are operations and not loops over tensor lists."""
    import openvino

    disable_telemetry()
    return openvino.convert_model(convert.onnx_file(subject))


def disable_telemetry() -> None:
    """Keep OpenVINO's converter and NNCF from reporting their use over the network: they do not where CI is set."""
    os.environ["CI"] = "true"  # safe: this process only converts


def configuration(threads: int, float_type: str, streams: int = 1) -> dict[str, Any]:
    hint = {"PERFORMANCE_HINT": "LATENCY"} if streams == 1 else {"NUM_STREAMS": streams}
    return {**hint, "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": float_type}


def computes(compiled: Any) -> dict[str, int]:
    """How many heavy nodes of a compiled model compute in each type."""
    found: Counter[str] = Counter()
    for node in compiled.get_runtime_model().get_ops():
        facts = node.get_rt_info()
        if facts["layerType"].astype(str) in HEAVY:
            kind = facts["runtimePrecision"].astype(str).lower()
            found[TYPES.get(kind, kind)] += 1
    return dict(found)


def computable(kind: str) -> bool:
    """Whether the processor multiplies in this type itself, without emulation."""
    return kind not in REQUIRED_CPU_FLAGS or not cpu_flags().isdisjoint(REQUIRED_CPU_FLAGS[kind])


def _streams(subject: Subject, cores: int) -> list[int]:
    """One stream for all threads, or one per core with its own part of the batch."""
    rows_per_sample = all(one.shape and one.shape[0] is None for one in subject.outputs)
    return [1, cores] if rows_per_sample and cores > 1 and any(batch % cores == 0 for batch in subject.batches) else [1]


def loader_source(setting: Setting, batch: int) -> str:
    """The batch size that was measured is fixed in one compiled model; a second one, made when needed, takes any."""
    streams = int(setting.get("streams", 1))
    parts = streams if batch and batch % streams == 0 else 1
    threads, kind = int(setting["threads"]), str(setting["rest"])
    in_parts = IN_PARTS.replace("STREAMS", str(parts)).replace("PART", str(batch // parts))
    static = f"""
        # The batch size that was measured.
        model.reshape({{entry: [{batch // parts}, *list(entry.partial_shape)[1:]] for entry in model.inputs}})
    """
    return f'''\
import threading
from pathlib import Path

import numpy as np
import openvino


def load(directory, cache=None):
    """A function from a list of arrays to a list of arrays, for any number of samples.

    `cache`: a directory that makes the next load faster.
    """
    answer, others = open_file(directory, cache), []

    def run(inputs):
        if {batch} and len(inputs[0]) != {batch}:
            if not others:
                others.append(open_any(directory, cache))
            return others[0](inputs)
        return answer(inputs)

    return run


def read(directory, cache):
    core = openvino.Core()
    if cache is not None:
        core.set_property({{"CACHE_DIR": str(cache)}})
    return core, core.read_model(Path(directory) / "{FILE}")


def open_file(directory, cache):
    core, model = read(directory, cache)
{lines_if(batch, static)}\
    compiled = core.compile_model(model, "CPU", {configuration(threads, kind, parts)})
    outputs = range(len(model.outputs))
{in_parts if parts > 1 else WHOLE_BATCH}

def open_any(directory, cache):
    core, model = read(directory, cache)
    compiled = core.compile_model(model, "CPU", {configuration(threads, kind)})
    outputs = range(len(model.outputs))
{WHOLE_BATCH}'''


WHOLE_BATCH = """\
    request, lock = compiled.create_infer_request(), threading.Lock()  # a request has room for one call

    def run(inputs):
        with lock:
            request.infer(list(inputs), share_inputs=True)
            return [np.array(request.get_output_tensor(i).data) for i in outputs]

    return run
"""

IN_PARTS = """\
    requests, lock = [compiled.create_infer_request() for _ in range(STREAMS)], threading.Lock()

    def run(inputs):
        if any(len(array) != STREAMS * PART for array in inputs):
            raise ValueError("the inputs have different numbers of samples")
        with lock:
            for i, request in enumerate(requests):
                request.start_async([array[i * PART : (i + 1) * PART] for array in inputs], share_inputs=True)
            for request in requests:
                request.wait()
            return [np.concatenate([request.get_output_tensor(i).data for request in requests]) for i in outputs]

    return run
"""

ROUTES = (OpenVino(), OpenVinoBfloat16(), OpenVinoFloat16(), OpenVinoInt8(), OpenVinoMixed())
