"""What an ONNX file contains, and which types ONNX Runtime computes in when it runs the file."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from flatout.routes._onnx.graph import graphs
from flatout.routes._route import Contents, End
from flatout.subject import FEW_ELEMENTS

OPERATIONS = {
    "float32": "Conv FusedConv ConvTranspose Gemm FusedGemm MatMul FusedMatMul LSTM GRU RNN Attention",
    "int8": "QLinearConv QLinearMatMul QGemm MatMulIntegerToFloat QAttention",
    "int8-weights": "ConvInteger MatMulInteger DynamicQuantizeMatMul DynamicQuantizeLSTM MatMulNBits",
}
KINDS = {name: kind for kind, names in OPERATIONS.items() for name in names.split()}


def inspect(path: Path) -> Contents:
    return Contents(*weights(path), computes(path))


def ends(path: Path) -> tuple[list[End], list[End]]:
    """Inputs and outputs, without the weights that old files name among the inputs."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    stored = {one.name for one in graph.initializer}
    return [_end(one) for one in graph.input if one.name not in stored], [_end(one) for one in graph.output]


def _end(value: Any) -> End:
    import onnx

    tensor = value.type.tensor_type
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else None
    shape = tuple(one.dim_value if one.HasField("dim_value") else None for one in tensor.shape.dim)
    return End(value.name, kind.name if kind is not None and kind.kind in "biuf" else "", shape)


def weights(path: Path) -> tuple[int, int]:
    """Elements and bytes of the constants."""
    import onnx

    constants = list(_constants(onnx.load(path)))
    elements = sum(_elements(tensor) for tensor in constants)
    return elements, sum(len(tensor.raw_data) or 4 * _elements(tensor) for tensor in constants)


def computes(path: Path) -> dict[str, int]:
    """Heavy nodes by type, in the graph as the runtime has optimized it.

    The file itself is not enough: where the runtime does not fuse quantize and dequantize nodes with the operation
    between them, it computes in float.
    """
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory() as directory:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = f"{directory}/optimized.onnx"
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        model = onnx.load(options.optimized_model_filepath)
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    dynamic = {output for node in nodes if node.op_type == "DynamicQuantizeLinear" for output in node.output}
    return dict(Counter(_compute_type(node, dynamic) for node in nodes if node.op_type in KINDS))


def _compute_type(node: Any, dynamic: set[str]) -> str:
    kind = KINDS[node.op_type]
    return "int8-weights" if kind == "int8" and node.input[0] in dynamic else kind


def _constants(model: Any) -> Any:
    for graph in graphs(model.graph):
        tensors = [
            *graph.initializer,
            *(item.t for node in graph.node for item in node.attribute if item.HasField("t")),
        ]
        yield from (tensor for tensor in tensors if _elements(tensor) > FEW_ELEMENTS)


def _elements(tensor: Any) -> int:
    return math.prod(tensor.dims)
