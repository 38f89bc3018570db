"""What a .tflite file holds, read from its schema."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from flatout.routes._route import Inside
from flatout.subject.writing import FEW

HEAVY = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D", "FULLY_CONNECTED", "BATCH_MATMUL", "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN",
)  # fmt: skip
WIDTHS = {
    "FLOAT32": 4,
    "FLOAT16": 2,
    "INT32": 4,
    "UINT8": 1,
    "INT64": 8,
    "INT16": 2,
    "INT8": 1,
    "FLOAT64": 8,
    "INT4": 0.5,
}


def inspect(path: Path) -> Inside:
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))
    types = _names(schema.TensorType)
    heavy = {getattr(schema.BuiltinOperator, name) for name in HEAVY if hasattr(schema.BuiltinOperator, name)}
    weights, size = 0, 0.0
    seen: set[int] = set()
    computes: dict[str, int] = {}
    for graph in model.subgraphs:
        constant = {i for i, tensor in enumerate(graph.tensors) if _holds_data(model.buffers[tensor.buffer])}
        for i in constant:
            tensor = graph.tensors[i]
            count = math.prod(map(int, tensor.shape)) if tensor.shape is not None else 1
            if count > FEW and tensor.buffer not in seen:
                seen.add(tensor.buffer)
                weights += count
                size += count * WIDTHS.get(types[tensor.type], 4)
        made_from = _dequantized(graph, model, schema)
        for operator in graph.operators:
            if _code(model, operator) in heavy:
                name = _computes(graph, operator, types, made_from)
                computes[name] = computes.get(name, 0) + 1
    return Inside(weights, int(size), computes)


def _computes(graph: Any, operator: Any, types: dict[int, str], made_from: dict[int, int]) -> str:
    first, second = (int(place) for place in operator.inputs[:2])
    activations = types[graph.tensors[first].type]
    other = types[graph.tensors[made_from.get(second, second)].type]
    if activations in ("INT8", "UINT8", "INT16"):
        return "int8"
    if other in ("INT8", "UINT8", "INT4"):
        return "int8-weights"
    return "float16" if other == "FLOAT16" else "float32"


def _dequantized(graph: Any, model: Any, schema: Any) -> dict[int, int]:
    """Float tensors that are made from smaller constants when the model is loaded: output → constant."""
    return {
        int(operator.outputs[0]): int(operator.inputs[0])
        for operator in graph.operators
        if _code(model, operator) == schema.BuiltinOperator.DEQUANTIZE
    }


def _code(model: Any, operator: Any) -> int:
    code = model.operatorCodes[operator.opcodeIndex]
    return max(int(code.builtinCode), int(code.deprecatedBuiltinCode))


def _holds_data(buffer: Any) -> bool:
    return (buffer.data is not None and len(buffer.data) > 0) or bool(getattr(buffer, "size", 0))


def _names(enumeration: Any) -> dict[int, str]:
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}
