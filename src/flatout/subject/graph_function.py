"""A graph as a function of TensorFlow 2 that can be saved: its weights are variables, its tables are objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flatout.subject.subject import FEW_ELEMENTS

NEWER = {"LookupTableFind": "LookupTableFindV2", "LookupTableSize": "LookupTableSizeV2"}
"""Operations on the handle of a table as a string, and the same on a resource."""


@dataclass(frozen=True)
class Ends:
    """Inputs and outputs of a graph: names for users, and the tensors."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """The contents of a table, and the node that gives its handle."""

    node: str
    keys: Any
    values: Any
    key_type: str
    value_type: str


class GraphFunction:
    def __init__(
        self,
        definition: Any,
        ends: Ends,
        tables: Sequence[Table] = (),
        derived: Mapping[str, Callable[[Sequence[Any]], Any]] | None = None,
    ) -> None:
        """`derived`: tensors of the graph that are computed from the inputs in another way than the graph's own."""
        import tensorflow as tf

        self.ends = ends
        self.source = definition
        self.specifications: list[Any] = []
        """One TensorSpec for each input, where they are known."""
        self.derived = dict(derived or {})
        self.owner = tf.Module()
        self.owner.tables = [_made(table) for table in tables]
        self.tables = {table.node: made for table, made in zip(tables, self.owner.tables, strict=True)}
        self.weights = {
            node.name: tf.Variable(tf.make_ndarray(node.attr["value"].tensor), trainable=False, name="weight")
            for node in definition.node
            if _is_weight(node)
        }
        self.owner.weights = list(self.weights.values())
        self.definition = _with_placeholders(definition, set(self.weights), set(self.tables))
        self.read = {name for node in self.definition.node for name in node.input} | set(ends.outputs.values())

    @property
    def variables(self) -> list[Any]:
        return list(self.weights.values())

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """To be called where a tf.function is traced."""
        import tensorflow as tf

        given = dict(zip(self.ends.inputs.values(), inputs, strict=True))
        given |= {name: compute(inputs) for name, compute in self.derived.items()}
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
    count = math.prod(int(dimension.size) for dimension in node.attr["value"].tensor.tensor_shape.dim)
    return count > FEW_ELEMENTS


def _with_placeholders(definition: Any, weights: set[str], tables: set[str]) -> Any:
    """The graph with placeholders for these nodes, and with the newer form of operations on tables."""
    import tensorflow as tf

    made = tf.compat.v1.GraphDef()
    made.CopyFrom(definition)
    for node in made.node:
        node.op = NEWER.get(node.op, node.op)
        if node.name in weights or node.name in tables:
            dtype = tf.resource if node.name in tables else tf.as_dtype(node.attr["dtype"].type)
            placeholder(node, dtype)
    return made


def placeholder(node: Any, dtype: Any) -> None:
    node.op = "Placeholder"
    node.ClearField("input")
    node.ClearField("attr")
    node.attr["dtype"].type = dtype.as_datatype_enum


def _made(table: Table) -> Any:
    """The table as an object. The value for what it lacks is an input of each lookup, so any will do here."""
    import tensorflow as tf

    keys, values = tf.constant(table.keys, table.key_type), tf.constant(table.values, table.value_type)
    default = tf.constant("" if table.value_type == "string" else 0, table.value_type)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
