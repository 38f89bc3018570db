"""The routes through ONNX: what they repair, what they offer, what they leave out, and the loaders they write."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.routes import catalogue, openvino, tensorrt
from flatout.routes._onnx.repair import repair
from flatout.subject import Subject, Tensor

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

NAMES = ("onnxruntime-", "openvino-", "tensorrt-")


def subject(**facts: Any) -> Subject:
    tensor = Tensor("x", "float32", (None, 4), (4,))
    return Subject(Path("nowhere"), "model.keras", "keras", (tensor,), (tensor,), **facts)


def model(nodes: list[Any], shape: list[int], **constants: Any) -> Any:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    values = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "graph", [x], [y], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def answer(made: Any, x: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    onnx.checker.check_model(made, full_check=True)
    return ReferenceEvaluator(made).run(None, {"x": x})[0]


HALF = math.sqrt(0.5)
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
ARGUMENTS = {
    "negated, then scaled": ([("Neg", ["x"], "n"), ("Mul", ["n", "c"], "a")], HALF, "Div"),
    "scaled, then negated": ([("Mul", ["c", "x"], "m"), ("Neg", ["m"], "a")], HALF, "Div"),
    "scaled by a negative": ([("Mul", ["x", "c"], "a")], -HALF, "Div"),
    "not a GELU: positive": ([("Mul", ["x", "c"], "a")], HALF, "Sub"),
    "not a GELU: another factor": ([("Neg", ["x"], "n"), ("Mul", ["n", "c"], "a")], 0.3, "Sub"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_erfc_is_expressed_with_erf(name: str) -> None:
    steps, factor, kind = ARGUMENTS[name]
    nodes = [helper.make_node(operation, inputs, [output]) for operation, inputs, output in steps]
    made = model([*nodes, helper.make_node("Erfc", ["a"], ["y"])], [3, 4], c=factor)
    repair(made)
    sign = 1 if name == "not a GELU: positive" else -1
    wanted = np.vectorize(math.erfc)(sign * abs(factor) * X)
    np.testing.assert_allclose(answer(made, X), wanted, atol=1e-6)
    kinds = [node.op_type for node in made.graph.node]
    assert kind in kinds
    assert "Erfc" not in kinds


@pytest.mark.parametrize("ones", [1.0, 2.0])
def test_a_layer_normalisation_becomes_one_again(ones: float) -> None:
    made = model(
        [
            helper.make_node("InstanceNormalization", ["x", "ones", "zeros"], ["n"], epsilon=1e-3),
            helper.make_node("Mul", ["n", "scale"], ["m"]),
            helper.make_node("Add", ["shift", "m"], ["y"]),
        ],
        [1, 3, 4],
        ones=[ones] * 3,
        zeros=[0] * 3,
        scale=[1, 2, 3, 4],
        shift=[4, 3, 2, 1],
    )
    before = answer(made, X[None])
    repair(made)
    np.testing.assert_allclose(answer(made, X[None]), before, atol=1e-5)
    expected = ["LayerNormalization"] if ones == 1 else ["InstanceNormalization", "Mul", "Add"]
    assert [node.op_type for node in made.graph.node] == expected


@pytest.mark.parametrize(
    ("mean", "axes", "minus", "one"),
    [
        ("GlobalAveragePool", None, "Neg", True),
        ("ReduceMean", [-1], "Neg", True),
        ("ReduceMean", [2], "Neg", True),
        ("ReduceMean", [1], "Neg", False),
        ("GlobalAveragePool", None, "Abs", False),
    ],
)
def test_a_layer_normalisation_as_keras_computes_it(mean: str, axes: Any, minus: str, one: bool) -> None:
    steps = [
        (mean, ["x"], "mean"),
        ("Sub", ["x", "mean"], "off"),
        ("Mul", ["off", "off"], "square"),
        (mean, ["square"], "variance"),
        ("Add", ["variance", "epsilon"], "total"),
        ("Sqrt", ["total"], "root"),
        ("Reciprocal", ["root"], "inverse"),
        ("Mul", ["scale", "inverse"], "g"),
        (minus, ["mean"], "moved"),
        ("Mul", ["moved", "g"], "left"),
        ("Add", ["left", "shift"], "rest"),
        ("Mul", ["x", "g"], "right"),
        ("Add", ["right", "rest"], "y"),
    ]
    nodes = [
        helper.make_node(operation, inputs, [output], **({"axes": axes} if operation == "ReduceMean" else {}))
        for operation, inputs, output in steps
    ]
    vectors = {"scale": [[[1, 2, 3, 4]]], "shift": [[[4, 3, 2, 1]]]}
    made = model(nodes, [1, 3, 4], epsilon=1e-3, **vectors)
    before = answer(made, X[None])
    made.graph.value_info.append(helper.make_tensor_value_info("square", TensorProto.FLOAT, [1, 3, 4]))
    repair(made)
    np.testing.assert_allclose(answer(made, X[None]), before, atol=1e-5)
    kinds = [node.op_type for node in made.graph.node]
    assert (kinds == ["LayerNormalization"]) is one, "another formula stays as it is"


def test_what_is_repaired_inside_a_branch() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in "xy")
    inner = helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 4])
    then = helper.make_graph([helper.make_node("Erfc", ["x"], ["z"])], "then", [], [inner])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "other", [], [inner])
    node = helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    yes = numpy_helper.from_array(np.array(True), "yes")
    made = helper.make_model(
        helper.make_graph([node], "graph", [x], [y], [yes]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    repair(made)
    np.testing.assert_allclose(answer(made, X), np.vectorize(math.erfc)(X), atol=1e-6)


def test_every_loader_is_a_program_of_its_own() -> None:
    mine = [route for name, route in catalogue().items() if name.startswith(NAMES)]
    assert len(mine) == 12
    for route in mine:
        for setting in route.settings(subject(), 2):
            for batch in (0, 1, 16):
                tree = ast.parse(route.loader(setting, batch))
                imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
                assert not any(str(name).startswith("flatout") for name in imported)
                assert "load" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_what_is_hopeless_is_said() -> None:
    dynamic, static = catalogue()["onnxruntime-dynamic"], catalogue()["onnxruntime-int8"]
    assert "ConvInteger" in str(dynamic.skip_reason(subject(ops={"Conv2D": 3, "MatMul": 1})))
    assert dynamic.skip_reason(subject(ops={"MatMul": 4})) is None
    assert static.skip_reason(subject(ops={"Conv2D": 3})) is None
    assert static.skip_reason(subject(ops={"Conv2D": 3, "While": 1})) is None
    assert "recurrent" in str(static.skip_reason(subject(ops={"While": 1, "MatMul": 2})))
    mixed = catalogue()["openvino-int8-mixed"]
    assert mixed.skip_reason(subject(ops={"Conv2D": 20, "MatMul": 1})) is None
    assert "36 layers" in str(mixed.skip_reason(subject(ops={"Conv2D": 35, "MatMul": 1})))
    assert "recurrent" in str(mixed.skip_reason(subject(ops={"While": 1, "MatMul": 1})))
    assert "nothing" in str(static.skip_reason(subject(ops={"Add": 1})))


def test_a_route_that_is_missing_something_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    route = catalogue()["tensorrt-int8"]
    monkeypatch.setattr(tensorrt, "has_gpu", lambda: False)
    assert "NVIDIA" in str(route.skip_reason(subject()))
    assert route.extra == "tensorrt"


@pytest.mark.parametrize(
    ("flags", "can"), [("avx2 fma", ""), ("avx512_bf16", "bf16"), ("amx_bf16 amx_int8", "bf16"), ("asimdhp", "f16")]
)
def test_half_the_bits_are_only_offered_where_the_processor_has_them(
    monkeypatch: pytest.MonkeyPatch, flags: str, can: str
) -> None:
    monkeypatch.setattr(openvino, "cpu_flags", lambda: frozenset(flags.split()))
    for name, kind in (("openvino-bf16", "bf16"), ("openvino-fp16", "f16")):
        assert (catalogue()[name].skip_reason(subject()) is None) is (kind == can)
    settings = catalogue()["openvino-int8"].settings(subject(), 2)
    assert {setting["rest"] for setting in settings} == {"f32", can} - {""}
