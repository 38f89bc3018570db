"""Writes the int8 model as an ONNX file with QuantizeLinear and DequantizeLinear, for ONNX Runtime and OpenVINO.

Values get their scales from the rounding layers (tf2onnx turns them into such pairs); weights and biases are stored as
int8 and int32 here. The file is run and compared with the Keras model before it is returned.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, ToolMissing
from flatout.optimize.compress import checks
from flatout.optimize.compress.litert import WrittenFile, check_file, made_anew
from flatout.optimize.compress.quantize import Array, for_serving
from flatout.optimize.compress.structure import graph
from flatout.routes._onnx import convert

_OUT_AXIS = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1, "Gemm": 1}
_SAME_SCALE = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "MaxPool", "Pad", "Identity")


def write(model: Any, path: str | os.PathLike[str], inputs: list[Array], *, batch: int | None = None) -> WrittenFile:
    """Write the result of `quantize`, and check the file on these inputs with ONNX Runtime."""
    try:
        import onnx
    except ImportError as error:
        raise ToolMissing("onnx and tf2onnx are needed: pip install flatout[backends].") from error
    proto = convert_model(for_serving(model), batch)
    separate_ranges(proto)
    store_weights(proto)
    onnx.checker.check_model(proto)
    target = Path(path)
    with made_anew(target):
        onnx.save(proto, str(target))
        expected = checks.outputs(model, inputs)
        found = open_with_onnxruntime(target)(inputs)
        count = sum(tensor.data_type == onnx.TensorProto.INT8 for tensor in proto.graph.initializer)
        return check_file(target, expected, found, count)


def convert_model(plain: Any, batch: int | None) -> Any:
    """A Keras model as ONNX."""
    if importlib.util.find_spec("tf2onnx") is None:
        raise ToolMissing("onnx and tf2onnx are needed: pip install flatout[backends].")
    import tensorflow as tf
    from keras import tree

    functional = graph.functional(plain)
    signature = [
        tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, name=f"in{index}")
        for index, tensor in enumerate(functional.inputs)
    ]

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def serve(*given: Any) -> Any:
        answer = plain(tree.pack_sequence_as(functional._inputs_struct, list(given)), training=False)
        return tuple(tf.identity(part, name=f"out{index}") for index, part in enumerate(tree.flatten(answer)))

    try:
        return convert.convert_function(serve.get_concrete_function(), len(signature))
    except Exception as error:
        raise CompressionFailed(f"tf2onnx failed: {str(error)[:500]}") from error


def separate_ranges(proto: Any) -> None:
    """Give each pair a scale and a zero point of its own; tf2onnx shares equal ones. With shared ones OpenVINO leaves
    the product before them in float, and on ARM that kernel uses the scale of the first channel for all (nine int8
    steps of difference)."""
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        for index, name in enumerate(node.input):
            if index and name in constants:
                fresh = proto.graph.initializer.add()
                fresh.CopyFrom(constants[name])
                fresh.name = node.input[index] = f"{name}_of_{node.output[0]}"


def store_weights(proto: Any) -> None:
    """Store weights of convolutions and products as int8, their biases as int32, each with a DequantizeLinear."""
    from onnx import helper, numpy_helper

    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    makers = {name: node for node in proto.graph.node for name in node.output}
    fresh: list[Any] = []

    def dequantized(name: str, values: Array, scale: Array, axis: int) -> str:
        parts = {"_int": values, "_scale": scale.astype(np.float32), "_zero": np.zeros(scale.shape, values.dtype)}
        for ending, array in parts.items():
            proto.graph.initializer.append(numpy_helper.from_array(array, name + ending))
        names = [name + ending for ending in parts]
        fresh.append(
            helper.make_node("DequantizeLinear", names, [f"{name}_float"], name=f"{name}_dequantize", axis=axis)
        )
        return f"{name}_float"

    done: dict[tuple[str, int], str] = {}
    for node in proto.graph.node:
        if node.op_type not in _OUT_AXIS or len(node.input) < 2 or node.input[1] not in constants:
            continue
        name = node.input[1]
        kernel = numpy_helper.to_array(constants[name])
        if kernel.dtype != np.float32 or kernel.ndim < 2:
            continue
        axis = _OUT_AXIS[node.op_type]
        if node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute):
            axis = 0
        others = tuple(one for one in range(kernel.ndim) if one != axis)
        scale = np.maximum(np.abs(kernel).max(axis=others), 1e-8) / 127
        shape = [1] * kernel.ndim
        shape[axis] = len(scale)
        if (name, axis) not in done:
            whole = np.clip(np.round(kernel / scale.reshape(shape)), -127, 127).astype(np.int8)
            done[name, axis] = dequantized(f"{name}_{axis}", whole, scale, axis)
        node.input[1] = done[name, axis]
        step = _scale_of(node.input[0], makers, constants)
        if step is not None and len(node.input) > 2 and node.input[2] in constants:
            bias = numpy_helper.to_array(constants[node.input[2]])
            if bias.shape == scale.shape:
                wide = np.clip(np.round(bias / (step * scale)), -(2**31) + 1, 2**31 - 1).astype(np.int32)
                node.input[2] = dequantized(f"{node.input[2]}_{node.name}", wide, step * scale, 0)
    nodes = [*fresh, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    used = {name for node in proto.graph.node for name in node.input} | {tensor.name for tensor in proto.graph.output}
    kept = [tensor for tensor in proto.graph.initializer if tensor.name in used]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)


def _scale_of(name: str, makers: dict[str, Any], constants: dict[str, Any]) -> float | None:
    """The scale of a value: that of the DequantizeLinear that it comes from."""
    from onnx import numpy_helper

    while name in makers:
        node = makers[name]
        if node.op_type == "DequantizeLinear" and node.input[1] in constants:
            return float(numpy_helper.to_array(constants[node.input[1]]).ravel()[0])
        if node.op_type not in _SAME_SCALE:
            return None
        name = node.input[0]
    return None


def open_with_onnxruntime(path: Path, threads: int = 0) -> Callable[[list[Array]], list[Array]]:
    """A file opened with ONNX Runtime, as a function of arrays."""
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise ToolMissing("onnxruntime is not installed: pip install flatout[backends].") from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]

    def run(inputs: list[Array]) -> list[Array]:
        return [np.asarray(part) for part in session.run(None, dict(zip(names, inputs, strict=True)))]

    return run


def open_with_openvino(path: Path) -> Callable[[list[Array]], list[Array]]:
    """The file opened with OpenVINO. What is not int8 is computed in float32: by default OpenVINO uses a shorter type
    where the machine has one (float16 on ARM: a difference of fourteen int8 steps instead of two)."""
    try:
        import openvino as ov
    except ImportError as error:
        raise ToolMissing("openvino is not installed: pip install flatout[backends].") from error
    compiled = ov.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(inputs: list[Array]) -> list[Array]:
        answer = compiled(dict(enumerate(inputs)))
        return [np.asarray(answer[index]) for index in range(len(compiled.outputs))]

    return run
