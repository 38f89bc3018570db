"""What a .tflite file contains, read with its schema."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from flatout.routes._route import Contents, End
from flatout.subject import FEW_ELEMENTS

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


def ends(path: Path) -> tuple[list[End], list[End]]:
    """Names are those of the signature, where the file has one, else those of the tensors."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path))
    signatures = interpreter.get_signature_list()
    if len(signatures) == 1:
        runner = interpreter.get_signature_runner(next(iter(signatures)))
        named = {one["index"]: name for name, one in runner.get_input_details().items()}
        answered = {one["index"]: name for name, one in runner.get_output_details().items()}
    else:
        named, answered = {}, {}
    return (
        [_end(one, named) for one in interpreter.get_input_details()],
        [_end(one, answered) for one in interpreter.get_output_details()],
    )


def _end(details: dict[str, Any], names: dict[int, str]) -> End:
    lengths = details.get("shape_signature", details["shape"])
    shape = tuple(None if length < 0 else int(length) for length in lengths)
    return End(names.get(details["index"], details["name"]), details["dtype"].__name__, shape)


def inspect_file(path: Path) -> Contents:
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
            if count > FEW_ELEMENTS and tensor.buffer not in seen:
                seen.add(tensor.buffer)
                weights += count
                size += count * WIDTHS.get(types[tensor.type], 4)
        dequantized = _dequantized_constants(graph, model, schema)
        for operator in graph.operators:
            if _operator_code(model, operator) in heavy:
                name = _compute_type(graph, operator, types, dequantized)
                computes[name] = computes.get(name, 0) + 1
    return Contents(weights, int(size), computes)


def _compute_type(graph: Any, operator: Any, types: dict[int, str], dequantized: dict[int, int]) -> str:
    first, second = (int(index) for index in operator.inputs[:2])
    activations = types[graph.tensors[first].type]
    weights = types[graph.tensors[dequantized.get(second, second)].type]
    if activations in ("INT8", "UINT8", "INT16"):
        return "int8"
    if weights in ("INT8", "UINT8", "INT4"):
        return "int8-weights"
    return "float16" if weights == "FLOAT16" else "float32"


def _dequantized_constants(graph: Any, model: Any, schema: Any) -> dict[int, int]:
    """Float tensors that are computed from smaller constants when the model is loaded, each with its constant."""
    return {
        int(operator.outputs[0]): int(operator.inputs[0])
        for operator in graph.operators
        if _operator_code(model, operator) == schema.BuiltinOperator.DEQUANTIZE
    }


def _operator_code(model: Any, operator: Any) -> int:
    code = model.operatorCodes[operator.opcodeIndex]
    return max(int(code.builtinCode), int(code.deprecatedBuiltinCode))


def _holds_data(buffer: Any) -> bool:
    return (buffer.data is not None and len(buffer.data) > 0) or bool(getattr(buffer, "size", 0))


def _names(enumeration: Any) -> dict[int, str]:
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}
