"""TensorRT, through ONNX, where there is an NVIDIA GPU: float32 without TF32, float16, or 8 bits.

The ONNX file carries the types: TensorRT 11 has no other way, and TensorRT 10 follows them when the network is strongly
typed. An engine only runs on the kind of GPU that it was built on, so the ONNX file is kept with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.environment.machine import has_gpu
from flatout.model.case import Equivalence
from flatout.model.errors import ConversionFailed
from flatout.routes._onnx import convert
from flatout.routes._route import Contents, Precision, Route, Setting
from flatout.subject import Subject

ONNX, ENGINE = "model.onnx", "model.engine"
HEAVY = ("conv", "gemm", "matrix", "matmul", "rnn", "mha")
"""Parts of the names of the layers, as TensorRT names them, that take most of the time."""
TYPES = {
    "int8": "int8",
    "half": "float16",
    "fp16": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
}


class TensorRt(Route):
    name: ClassVar[str] = "tensorrt-fp32"
    family: ClassVar[str] = "TensorRT"
    format: ClassVar[str] = "TensorRT engine"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "reassociated"
    packages: ClassVar[tuple[str, ...]] = ("tensorrt", "cuda", "onnxruntime", "onnx", "tf2onnx")
    extra: ClassVar[str] = "tensorrt"
    order: ClassVar[int] = 3

    def missing_package(self) -> str | None:
        return super().missing_package() if has_gpu() else None  # without a GPU the packages would not help

    def skip_reason(self, subject: Subject) -> str | None:
        return None if has_gpu() else "there is no NVIDIA GPU here"

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        return ({},)

    def convert(self, subject: Subject, directory: Path) -> None:
        self.write_onnx(subject, directory / ONNX)
        (directory / ENGINE).write_bytes(_build_engine(directory / ONNX, subject))

    def write_onnx(self, subject: Subject, path: Path) -> None:
        convert.copy_onnx_file(subject, path)

    def inspect(self, directory: Path) -> Contents:
        from flatout.routes._onnx import contents

        weights, size = contents.weights(directory / ONNX)
        return Contents(weights, size, _computes(directory / ENGINE))

    def loader(self, setting: Setting, batch: int) -> str:
        return LOADER


class TensorRtFloat16(TensorRt):
    name: ClassVar[str] = "tensorrt-fp16"
    precision: ClassVar[Precision] = "float16"
    equivalence: ClassVar[Equivalence] = "precision"

    def write_onnx(self, subject: Subject, path: Path) -> None:
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        model = onnx.load(convert.onnx_file(subject))
        convert.save(convert_float_to_float16(model, keep_io_types=True), path)


class TensorRtInt8(TensorRt):
    name: ClassVar[str] = "tensorrt-int8"
    precision: ClassVar[Precision] = "int8"
    equivalence: ClassVar[Equivalence] = "precision"
    needs_data: ClassVar[bool] = True

    def write_onnx(self, subject: Subject, path: Path) -> None:
        from flatout.routes._onnx import quantize

        quantize.quantize(convert.onnx_file(subject), path, subject, signed=True)


def _build_engine(path: Path, subject: Subject) -> bytes:
    import tensorrt as trt

    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(path.read_bytes()):
        raise ConversionFailed(f"TensorRT cannot read the converted ONNX model: {parser.get_error(0).desc()}")
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # so that the engine records its types
    if subject.batching == "dynamic":
        profile = builder.create_optimization_profile()
        for i in range(network.num_inputs):
            entry = network.get_input(i)
            shapes = [(batch, *tuple(entry.shape)[1:]) for batch in _batch_range(subject.batches)]
            profile.set_shape(entry.name, *shapes)
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise ConversionFailed(
            "TensorRT could not build an engine for this model. Its messages are in the log of this route."
        )
    return bytes(engine)


def _batch_range(batches: tuple[int, ...]) -> tuple[int, int, int]:
    """The smallest batch size, the one to optimize for, and the largest: what a profile of TensorRT wants."""
    return min(batches), batches[0], max(batches)


def _computes(path: Path) -> dict[str, int]:
    import tensorrt as trt

    engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(path.read_bytes())
    description = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    found: Counter[str] = Counter()
    for layer in json.loads(description)["Layers"]:
        if not isinstance(layer, dict) or not layer.get("Inputs"):
            continue
        kind = f"{layer.get('LayerType', '')} {layer.get('Name', '')}".lower()
        if any(word in kind for word in HEAVY):
            words = layer["Inputs"][0].get("Format/Datatype", "").lower()
            found[next((mine for word, mine in TYPES.items() if word in words), words)] += 1
    return dict(found)


LOADER = '''\
import threading
from pathlib import Path

import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cuda


def check(answer):
    error, *values = answer
    if error != cuda.cudaError_t.cudaSuccess:
        raise RuntimeError(str(error))
    return values[0] if values else None


def load(directory):
    """A function from a list of arrays to a list of arrays."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    engine = runtime.deserialize_cuda_engine((Path(directory) / "model.engine").read_bytes())
    context = engine.create_execution_context()
    stream = check(cuda.cudaStreamCreate())
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    entries = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    results = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT]
    buffers, lock = {}, threading.Lock()

    def buffer(name, size):
        if buffers.get(name, (0, 0))[1] < size:
            if name in buffers:
                check(cuda.cudaFree(buffers[name][0]))
            buffers[name] = (check(cuda.cudaMalloc(size)), size)
        context.set_tensor_address(name, buffers[name][0])
        return buffers[name][0]

    def run(inputs):
        with lock:  # there is one context, and one set of buffers
            return answer([np.asarray(array, order="C") for array in inputs])

    def answer(inputs):
        for name, array in zip(entries, inputs):
            if not context.set_input_shape(name, array.shape):
                raise ValueError(f"the engine was not built for {name} of {array.shape}")
            to = cuda.cudaMemcpyKind.cudaMemcpyHostToDevice
            check(cuda.cudaMemcpyAsync(buffer(name, array.nbytes), array.ctypes.data, array.nbytes, to, stream))
        types = [trt.nptype(engine.get_tensor_dtype(name)) for name in results]
        outputs = [np.empty(tuple(context.get_tensor_shape(name)), kind) for name, kind in zip(results, types)]
        addresses = [buffer(name, array.nbytes) for name, array in zip(results, outputs)]
        if not context.execute_async_v3(stream):
            raise RuntimeError("TensorRT could not run the engine.")
        for address, array in zip(addresses, outputs):
            back = cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost
            check(cuda.cudaMemcpyAsync(array.ctypes.data, address, array.nbytes, back, stream))
        check(cuda.cudaStreamSynchronize(stream))
        return outputs

    return run
'''

ROUTES = (TensorRt(), TensorRtFloat16(), TensorRtInt8())
