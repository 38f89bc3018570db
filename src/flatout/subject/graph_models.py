"""Opens models that are graphs and nothing else: SavedModels of TensorFlow 1, and frozen graphs (`.pb`).

TensorFlow 2 wraps such a graph in a function that it can call and cannot save: reference variables and tables belong to
no object. So the graph is run once in a session of TensorFlow 1, variables are read out of it and become constants, the
contents of tables are exported. Of these a function of TensorFlow 2 is made: weights are variables, tables are tables,
and both are objects that can be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.model.errors import ModelRefused
from flatout.subject.graph_function import Ends, GraphFunction, Table
from flatout.subject.keras_models import dtype_name, plain_names
from flatout.subject.original import DeclaredInput, Original

TABLES = frozenset(
    [
        "HashTable",
        "HashTableV2",
        "MutableDenseHashTable",
        "MutableDenseHashTableV2",
        "MutableHashTable",
        "MutableHashTableV2",
    ]
)
SERVING = "serve"
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
NOT_RESULTS = ("Assert", "NoOp", "Const")
"""Nodes without consumers that are no outputs of a frozen graph."""


def open_saved_model(path: Path, meta: Any, choose: Callable[[Sequence[str]], str]) -> Original:
    """A signature of a SavedModel that TensorFlow 1 has written. `meta` is its graph for serving."""
    import tensorflow as tf

    signature = meta.signature_def[choose(sorted(meta.signature_def))]
    ends = Ends(_tensors(signature.inputs, path), _tensors(signature.outputs, path))
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        try:
            tf.compat.v1.saved_model.load(session, list(meta.meta_info_def.tags), str(path))
        except Exception as error:
            raise _unusable(path, error) from error
        extracted = _extracted(session, ends)
    return _original(extracted, ends)


def open_file(path: Path, check: Callable[[Any, Sequence[str]], None]) -> Original:
    """A frozen graph. `check` is given the graph and its outputs before anything of it runs."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    definition = tf.compat.v1.GraphDef()
    try:
        definition.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ModelRefused(
            f"{path} cannot be read as a frozen graph: {error}. Of a SavedModel, give the directory and not its file."
        ) from None
    ends = _ends_of(definition, path)
    check(definition, list(ends.outputs.values()))
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        try:
            tf.import_graph_def(definition, name="")
            initializers = [node.name for node in definition.node if node.op.startswith("InitializeTable")]
            session.run([graph.get_operation_by_name(name) for name in initializers])
        except Exception as error:
            raise _unusable(path, error) from error
        extracted = _extracted(session, ends)
    return _original(extracted, ends)


def serving_graph(message: Any) -> Any:
    """The graph of a SavedModel message that is for serving: there may be others, for training."""
    graphs = list(message.meta_graphs)
    return next((one for one in graphs if SERVING in one.meta_info_def.tags), graphs[0])


def _unusable(path: Path, error: Exception) -> ModelRefused:
    reason = " ".join(str(error).split())[:400]
    return ModelRefused(
        f"{path} could not be opened by TensorFlow: {reason}. If it has operations of a library of its own, name the "
        "module that loads them with --import MODULE."
    )


def _tensors(ends: Any, path: Path) -> dict[str, str]:
    for name, one in ends.items():
        if not one.name:
            raise ModelRefused(
                f"{name!r} of {path} is a sparse or ragged tensor, which no other runtime takes. Export a signature "
                "with dense inputs and outputs."
            )
    return {name: ends[name].name for name in sorted(ends)}


def _ends_of(definition: Any, path: Path) -> Ends:
    """The placeholders of a frozen graph, and the results that nothing else reads."""
    read = {_node_of(name) for node in definition.node for name in node.input}
    inputs = [node.name for node in definition.node if node.op in PLACEHOLDERS]
    left = [node for node in definition.node if node.name not in read and node.name not in inputs]
    outputs = [
        node.name for node in left if node.op not in NOT_RESULTS and not node.op.startswith(("InitializeTable", "Save"))
    ]
    if not inputs or not outputs:
        raise ModelRefused(
            f"{path} has no {'inputs (placeholders)' if not inputs else 'outputs'}. Give a frozen graph that has both, "
            "or a SavedModel."
        )
    return Ends({name: f"{name}:0" for name in inputs}, {name: f"{name}:0" for name in outputs})


@dataclass(frozen=True)
class Extracted:
    """What a session held: the graph with its variables as constants, its tables, its inputs as they are declared."""

    definition: Any
    tables: Sequence[Table]
    inputs: tuple[DeclaredInput, ...]


def _extracted(session: Any, ends: Ends) -> Extracted:
    import tensorflow as tf

    nodes = [_node_of(name) for name in ends.outputs.values()]
    definition = tf.compat.v1.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), nodes)
    inputs = []
    for name, tensor in zip(plain_names(list(ends.inputs)), ends.inputs.values(), strict=True):
        one = session.graph.get_tensor_by_name(tensor)
        lengths = (None,) if one.shape.rank is None else tuple(one.shape.as_list())
        inputs.append(DeclaredInput(name, dtype_name(one.dtype), lengths, one.shape.rank is None))
    tables = [_exported(session, node) for node in definition.node if node.op in TABLES]
    return Extracted(definition, tables, tuple(inputs))


def _original(extracted: Extracted, ends: Ends) -> Original:
    function = GraphFunction(extracted.definition, ends, extracted.tables)
    return Original(
        kind="saved_model",
        call=function,
        inputs=extracted.inputs,
        output_names=lambda count: list(ends.outputs),
        variables=function.variables,
        owner=function.owner,
    )


def _exported(session: Any, node: Any) -> Table:
    import tensorflow as tf
    from tensorflow.python.ops import gen_lookup_ops

    types = [tf.as_dtype(node.attr[name].type) for name in ("key_dtype", "value_dtype")]
    handle = session.graph.get_tensor_by_name(f"{node.name}:0")
    export = gen_lookup_ops.lookup_table_export_v2 if node.op.endswith("V2") else gen_lookup_ops.lookup_table_export
    with session.graph.as_default():
        both = export(handle, *types)
    keys, values = session.run(list(both))
    return Table(node.name, keys, values, types[0].name, types[1].name)


def _node_of(tensor: str) -> str:
    return tensor.lstrip("^").partition(":")[0]
