"""Opens models that are graphs and nothing else: SavedModels of TensorFlow 1, and frozen graphs (`.pb`).

TensorFlow 2 wraps such a graph in a function that it can call and cannot save: reference variables and tables belong to
no object. So the graph is run once in a session of TensorFlow 1, variables are read out of it and become constants, the
contents of tables are exported. Of these a function of TensorFlow 2 is made: weights are variables, tables are tables,
and both are objects that can be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.model.errors import ModelRefused
from flatout.subject.keras_models import dtype_name, plain_name
from flatout.subject.original import DeclaredInput, Original
from flatout.subject.subject import FEW_ELEMENTS

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
NEWER = {"LookupTableFind": "LookupTableFindV2", "LookupTableSize": "LookupTableSizeV2"}
"""Operations on the handle of a table as a string, and the same on a resource."""
SERVING = "serve"
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
NOT_RESULTS = ("Assert", "NoOp", "Const")
"""Nodes without consumers that are no outputs of a frozen graph."""


@dataclass(frozen=True)
class Ends:
    """Inputs and outputs of a graph: names for users, and the tensors."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """The contents of a table, and the node that makes it."""

    node: str
    keys: Any
    values: Any


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
    """What a session held: the graph with its variables as constants, its tables, and the inputs as it declares them."""

    definition: Any
    tables: Sequence[Table]
    inputs: tuple[DeclaredInput, ...]


def _extracted(session: Any, ends: Ends) -> Extracted:
    import tensorflow as tf

    nodes = [_node_of(name) for name in ends.outputs.values()]
    definition = tf.compat.v1.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), nodes)
    inputs = []
    for i, (name, tensor) in enumerate(ends.inputs.items()):
        one = session.graph.get_tensor_by_name(tensor)
        lengths = (None,) if one.shape.rank is None else tuple(one.shape.as_list())
        inputs.append(DeclaredInput(plain_name(name, i), dtype_name(one.dtype), lengths, one.shape.rank is None))
    tables = [_exported(session, node) for node in definition.node if node.op in TABLES]
    return Extracted(definition, tables, tuple(inputs))


def _original(extracted: Extracted, ends: Ends) -> Original:
    function = _Function(extracted.definition, ends, extracted.tables)
    return Original(
        kind="saved_model",
        call=function,
        inputs=extracted.inputs,
        output_names=lambda count: list(ends.outputs),
        variables=function.variables,
        owner=function.owner,
    )


def _exported(session: Any, node: Any) -> Table:
    from tensorflow.python.ops import gen_lookup_ops

    handle = session.graph.get_tensor_by_name(f"{node.name}:0")
    export = gen_lookup_ops.lookup_table_export_v2 if node.op.endswith("V2") else gen_lookup_ops.lookup_table_export
    with session.graph.as_default():
        both = export(handle, node.attr["key_dtype"].type, node.attr["value_dtype"].type)
    keys, values = session.run(list(both))
    return Table(node.name, keys, values)


class _Function:
    """The graph as a function of TensorFlow 2. Its weights are variables, its tables objects: both can be saved."""

    def __init__(self, definition: Any, ends: Ends, tables: Sequence[Table]) -> None:
        import tensorflow as tf

        self.ends = ends
        self.owner = tf.Module()
        self.owner.tables = [_made(table, definition) for table in tables]
        self.tables = {table.node: made for table, made in zip(tables, self.owner.tables, strict=True)}
        weights = [node for node in definition.node if _is_weight(node)]
        self.weights = {
            node.name: tf.Variable(tf.make_ndarray(node.attr["value"].tensor), trainable=False, name="weight")
            for node in weights
        }
        self.owner.weights = list(self.weights.values())
        self.definition = _without(definition, {*self.weights, *self.tables})
        self.read = {name for node in self.definition.node for name in node.input} | set(ends.outputs.values())

    @property
    def variables(self) -> list[Any]:
        return list(self.weights.values())

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        import tensorflow as tf

        given = dict(zip(self.ends.inputs.values(), inputs, strict=True))
        given |= {f"{name}:0": tf.identity(variable) for name, variable in self.weights.items()}
        graph = tf.compat.v1.get_default_graph()
        given |= {f"{name}:0": graph.capture(table.resource_handle) for name, table in self.tables.items()}
        used = {name: value for name, value in given.items() if self._is_read(name)}
        outputs = list(self.ends.outputs.values())
        found = tf.import_graph_def(self.definition, input_map=used, return_elements=outputs, name="model")
        return [given.get(name, one) for name, one in zip(outputs, found, strict=True)]

    def _is_read(self, tensor: str) -> bool:
        return tensor in self.read or tensor.removesuffix(":0") in self.read


def _is_weight(node: Any) -> bool:
    import tensorflow as tf

    if node.op != "Const" or not tf.as_dtype(node.attr["dtype"].type).is_floating:
        return False
    count = 1
    for dimension in node.attr["value"].tensor.tensor_shape.dim:
        count *= dimension.size
    return count > FEW_ELEMENTS


def _without(definition: Any, replaced: set[str]) -> Any:
    """The graph with placeholders for these nodes, and with the newer form of operations on tables."""
    import tensorflow as tf

    made = tf.compat.v1.GraphDef()
    made.CopyFrom(definition)
    for node in made.node:
        node.op = NEWER.get(node.op, node.op)
        if node.name in replaced:
            dtype = tf.resource if node.op in TABLES else tf.as_dtype(node.attr["dtype"].type)
            node.op = "Placeholder"
            node.ClearField("input")
            node.ClearField("attr")
            node.attr["dtype"].type = dtype.as_datatype_enum
    return made


def _made(table: Table, definition: Any) -> Any:
    """The table as an object. The value for what it lacks is an input of each lookup, so any will do here."""
    import tensorflow as tf

    node = next(one for one in definition.node if one.name == table.node)
    key_type, value_type = (tf.as_dtype(node.attr[name].type) for name in ("key_dtype", "value_dtype"))
    keys, values = tf.constant(table.keys, key_type), tf.constant(table.values, value_type)
    default = tf.constant("" if value_type == tf.string else 0, value_type)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def _node_of(tensor: str) -> str:
    return tensor.lstrip("^").partition(":")[0]
