"""The check of SavedModels on messages made here: objects with the fields of the protocol buffers, no TensorFlow."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace as Thing
from typing import Any

import pytest

from flatout.subject.graph_check import unsafe_operations

ASSET, CONSTANT = "asset", "constant"


def attribute(text: bytes = b"", function: str = "") -> Thing:
    return Thing(s=text, func=Thing(name=function), list=Thing(func=[], s=[]))


def node(name: str, op: str, *inputs: str, **attributes: Thing) -> Thing:
    return Thing(name=name, op=op, input=list(inputs), attr=defaultdict(attribute, attributes))


def function(name: str, *nodes: Thing, arguments: tuple[str, ...] = ()) -> Thing:
    return Thing(signature=Thing(name=name, input_arg=[Thing(name=one) for one in arguments]), node_def=nodes)


def saved_model(
    *nodes: Thing,
    functions: tuple[Thing, ...] = (),
    objects: dict[str, list[int]] | None = None,
    kinds: tuple[str, ...] = (),
    restore: str = "",
    assets: tuple[str, ...] = (),
) -> Any:
    """A model whose signature gives `out`."""
    tensor = Thing(
        name="out:0",
        coo_sparse=Thing(values_tensor_name="", indices_tensor_name="", dense_shape_tensor_name=""),
        composite_tensor=Thing(components=[]),
    )
    bound = defaultdict(lambda: Thing(bound_inputs=[]))
    bound.update({name: Thing(bound_inputs=numbers) for name, numbers in (objects or {}).items()})
    graph = Thing(
        graph_def=Thing(node=nodes, library=Thing(function=functions)),
        signature_def={"serve": Thing(inputs={}, outputs={"y": tensor})},
        collection_def={},
        object_graph_def=Thing(
            concrete_functions=bound,
            nodes=[Thing(HasField=lambda name, kind=kind: name == kind) for kind in kinds],
        ),
        saver_def=Thing(restore_op_name=restore),
        asset_file_def=[Thing(tensor_info=Thing(name=name)) for name in assets],
    )
    return Thing(meta_graphs=[graph])


SAVING = function("save", node("a", "SaveV2"), node("b", "MergeV2Checkpoints"))
RESTORING = function("restore", node("a", "RestoreV2"), node("b", "AssignVariableOp", "a"))


def test_a_model_that_computes_and_its_saver_are_safe() -> None:
    calls = (
        node("out", "MatMul", "x", "w"),
        node("x", "Placeholder"),
        node("w", "ReadVariableOp"),
        node("saver", "StatefulPartitionedCall", f=attribute(function="save")),
        node("restorer", "StatefulPartitionedCall", f=attribute(function="restore")),
        node("pipeline", "TextLineDataset"),
    )
    assert unsafe_operations(saved_model(*calls, functions=(SAVING, RESTORING), restore="restorer")) == []


@pytest.mark.parametrize(
    "op",
    ["PyFunc", "EagerPyFunc", "ReadFile", "WriteFile", "SqlDataset", "TextLineDataset", "SaveDataset", "CacheDatasetV2",
     "SaveV2", "RestoreV2", "MergeV2Checkpoints", "XlaCallModule", "DebugIdentityV2", "ImmutableConst", "NotYetKnown"],
)  # fmt: skip
def test_what_is_not_on_the_list_is_refused(op: str) -> None:
    assert unsafe_operations(saved_model(node("out", "Identity", "^bad"), node("bad", op))) == [op]


def test_functions_are_followed_by_attribute_by_name_and_by_object() -> None:
    bad = function("bad", node("x", "ReadFile"))
    loop = function("loop", node("x", "While", body=attribute(function="bad")))
    assert unsafe_operations(
        saved_model(node("out", "PartitionedCall", f=attribute(function="loop")), functions=(loop, bad))
    ) == ["ReadFile"]
    assert unsafe_operations(saved_model(node("out", "bad"), functions=(bad,))) == ["ReadFile"]
    named = node("out", "Identity", _forward=attribute(b"bad"))
    assert unsafe_operations(saved_model(named, functions=(bad,))) == ["ReadFile"]
    assert unsafe_operations(saved_model(node("out", "NoOp"), functions=(bad,), objects={"bad": []})) == ["ReadFile"]
    assert unsafe_operations(saved_model(node("out", "NoOp"), functions=(bad,))) == []


def test_a_saver_that_writes_while_it_restores_is_refused() -> None:
    nodes = (node("out", "NoOp"), node("restorer", "StatefulPartitionedCall", f=attribute(function="save")))
    found = unsafe_operations(saved_model(*nodes, functions=(SAVING,), restore="restorer"))
    assert found == ["MergeV2Checkpoints", "SaveV2"]


def test_printing_goes_to_the_terminal_alone() -> None:
    there = node("out", "PrintV2", output_stream=attribute(b"stderr"))
    file = node("out", "PrintV2", output_stream=attribute(b"file:///tmp/x"))
    assert unsafe_operations(saved_model(there)) == []
    assert unsafe_operations(saved_model(file)) == ["PrintV2 to file:///tmp/x"]


def test_a_vocabulary_is_a_file_of_the_model() -> None:
    table = node("t", "InitializeTableFromTextFileV2", "table", "path")
    made = function("init", table, arguments=("table", "path"))
    out = node("out", "NoOp")
    assert unsafe_operations(saved_model(out, functions=(made,), objects={"init": [0, 0]}, kinds=(ASSET,))) == []
    refused = ["InitializeTableFromTextFileV2 of a file outside of the model"]
    constant = saved_model(out, functions=(made,), objects={"init": [0, 0]}, kinds=(CONSTANT,))
    assert unsafe_operations(constant) == refused
    inside = function("init", table, node("path", "Const"), arguments=("table",))
    assert unsafe_operations(saved_model(out, functions=(inside,), objects={"init": [0]}, kinds=(ASSET,))) == refused
    version_one = (node("out", "InitializeTableFromTextFileV2", "table", "path"), node("path", "Const"))
    assert unsafe_operations(saved_model(*version_one, assets=("path:0",))) == []
    assert unsafe_operations(saved_model(*version_one)) == refused


def test_operations_of_an_imported_library_are_allowed_by_name() -> None:
    model = saved_model(node("out", "MyOp"))
    assert unsafe_operations(model, frozenset(("MyOp",))) == []
    assert unsafe_operations(model, frozenset(("OtherOp",))) == ["MyOp"]
