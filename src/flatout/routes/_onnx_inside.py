"""What is in an ONNX file, and what ONNX Runtime really runs when it is given that file."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from flatout.routes._onnx_graph import graphs
from flatout.routes._route import Inside

FEW = 8
"""Constants of at most so many elements are not weights."""

OPERATIONS = {
    "float32": "Conv FusedConv ConvTranspose Gemm FusedGemm MatMul FusedMatMul LSTM GRU RNN Attention",
    "int8": "QLinearConv QLinearMatMul QGemm MatMulIntegerToFloat QAttention",
    "int8-weights": "ConvInteger MatMulInteger DynamicQuantizeMatMul DynamicQuantizeLSTM MatMulNBits",
}
KINDS = {name: kind for kind, names in OPERATIONS.items() for name in names.split()}


def inside(path: Path) -> Inside:
    return Inside(*weights(path), computes(path))


def weights(path: Path) -> tuple[int, int]:
    """Elements and bytes of the constants."""
    import onnx

    constants = list(_constants(onnx.load(path)))
    elements = sum(_elements(tensor) for tensor in constants)
    return elements, sum(len(tensor.raw_data) or 4 * _elements(tensor) for tensor in constants)


def computes(path: Path) -> dict[str, int]:
    """Heavy nodes of the graph as the runtime has rewritten it: a pair of quantize and dequantize nodes that it does
    not fuse is computed in float, whatever the file says."""
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory() as directory:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = f"{directory}/optimized.onnx"
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        model = onnx.load(options.optimized_model_filepath)
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    flying = {output for node in nodes if node.op_type == "DynamicQuantizeLinear" for output in node.output}
    return dict(Counter(_kind(node, flying) for node in nodes if node.op_type in KINDS))


def _kind(node: Any, flying: set[str]) -> str:
    kind = KINDS[node.op_type]
    return "int8-weights" if kind == "int8" and node.input[0] in flying else kind


def _constants(model: Any) -> Any:
    for graph in graphs(model.graph):
        tensors = [
            *graph.initializer,
            *(item.t for node in graph.node for item in node.attribute if item.HasField("t")),
        ]
        yield from (tensor for tensor in tensors if _elements(tensor) > FEW)


def _elements(tensor: Any) -> int:
    count = 1
    for length in tensor.dims:
        count *= length
    return count
