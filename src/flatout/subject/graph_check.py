"""Finds the operations of a SavedModel that could do more than compute.

What runs is followed from where the loader and a call begin: signatures, the functions of the objects in the file
(their initializers run when it is opened), the initialization of a TensorFlow 1 model and its restoring. A node that
none of them reaches never runs: the savers of each file are such nodes, and so are the input pipelines that a
TensorFlow 1 graph may still hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flatout.subject.safe_operations import RESTORING, SAFE_OPERATIONS, STREAMS, TABLES_OF_FILES

RUN_WHEN_OPENED = ("legacy_init_op", "saved_model_main_op", "saved_model_train_op")
"""Collections of a TensorFlow 1 model with what its loader runs."""
ASSETS = "saved_model_assets"


def unsafe_operations(saved_model: Any, custom: frozenset[str] = frozenset()) -> list[str]:
    """What a SavedModel message could run that is not on the list, described. `custom` are further safe operations."""
    found: set[str] = set()
    for graph in saved_model.meta_graphs:
        found.update(_Graph(graph, SAFE_OPERATIONS | custom).unsafe())
    return sorted(found)


def unsafe_in_graph(definition: Any, outputs: Sequence[str], custom: frozenset[str] = frozenset()) -> list[str]:
    """The same for a graph alone, of which these outputs and the initializers of its tables run."""
    from tensorflow.core.protobuf import meta_graph_pb2

    meta = meta_graph_pb2.MetaGraphDef(graph_def=definition)
    for i, name in enumerate(outputs):
        meta.signature_def["outputs"].outputs[str(i)].name = name
    initializers = [node.name for node in definition.node if node.op.startswith("InitializeTable")]
    meta.collection_def[RUN_WHEN_OPENED[0]].node_list.value.extend(initializers)
    return sorted(set(_Graph(meta, SAFE_OPERATIONS | custom).unsafe()))


class _Graph:
    def __init__(self, meta: Any, safe: frozenset[str]) -> None:
        self.meta = meta
        self.safe = safe
        self.nodes = {node.name: node for node in meta.graph_def.node}
        self.functions = {one.signature.name: one for one in meta.graph_def.library.function}
        self.assets = {_node_of(asset.tensor_info.name) for asset in (*meta.asset_file_def, *_older_assets(meta))}

    def unsafe(self) -> Iterator[str]:
        for node, function in self._reached(self._roots(), self.meta.object_graph_def.concrete_functions):
            yield from self._complaint(node, function, frozenset())
        for node, function in self._reached([self.meta.saver_def.restore_op_name], ()):
            yield from self._complaint(node, function, RESTORING)

    def _roots(self) -> Iterator[str]:
        for signature in self.meta.signature_def.values():
            for tensor in (*signature.inputs.values(), *signature.outputs.values()):
                yield tensor.name
                yield from (
                    tensor.coo_sparse.values_tensor_name,
                    tensor.coo_sparse.indices_tensor_name,
                    tensor.coo_sparse.dense_shape_tensor_name,
                )
                yield from (part.name for part in tensor.composite_tensor.components)
        for name in RUN_WHEN_OPENED:
            if name in self.meta.collection_def:
                yield from self.meta.collection_def[name].node_list.value

    def _reached(self, tensors: Iterable[str], functions: Iterable[str]) -> Iterator[tuple[Any, Any]]:
        """Each node that runs, with the function that it is in (None: in the graph itself)."""
        waiting = [_node_of(name) for name in tensors]
        seen: set[str] = set()
        called: set[str] = set()
        to_call = list(functions)
        while waiting or to_call:
            nodes: Iterable[Any]
            function = None
            if waiting:
                name = waiting.pop()
                if name in seen or name not in self.nodes:
                    continue
                seen.add(name)
                nodes = [self.nodes[name]]
                waiting += [_node_of(one) for one in self.nodes[name].input]
            else:
                name = to_call.pop()
                if name in called or name not in self.functions:
                    continue
                called.add(name)
                function = self.functions[name]
                nodes = function.node_def
            for node in nodes:
                yield node, function
                to_call += self._called_by(node)

    def _called_by(self, node: Any) -> Iterator[str]:
        if node.op in self.functions:
            yield node.op
        for value in node.attr.values():
            yield value.func.name
            yield from (one.name for one in value.list.func)
            for text in (value.s, *value.list.s):
                if len(text) < 1000:
                    yield text.decode("utf-8", "replace")

    def _complaint(self, node: Any, function: Any, also: frozenset[str]) -> Iterator[str]:
        if node.op == "PrintV2" and node.attr["output_stream"].s not in STREAMS:
            yield f"PrintV2 to {node.attr['output_stream'].s.decode('utf-8', 'replace')}"
        elif node.op in TABLES_OF_FILES:
            if not self._is_of_asset(node, function):
                yield f"{node.op} of a file outside of the model"
        elif node.op not in self.safe and node.op not in self.functions and node.op not in also:
            yield node.op

    def _is_of_asset(self, node: Any, function: Any) -> bool:
        """Whether the file that a table is made of is one of the model's own."""
        source = _node_of(node.input[1]) if len(node.input) > 1 else ""
        inside = self.nodes if function is None else {one.name: one for one in function.node_def}
        while source in inside and inside[source].op in ("Identity", "ReadVariableOp") and inside[source].input:
            source = _node_of(inside[source].input[0])
        if function is None:
            return source in self.assets
        arguments = [one.name for one in function.signature.input_arg]
        objects = self.meta.object_graph_def
        bound = list(objects.concrete_functions[function.signature.name].bound_inputs)
        place = arguments.index(source) - (len(arguments) - len(bound)) if source in arguments else -1
        return (
            0 <= place < len(bound)
            and bound[place] < len(objects.nodes)
            and objects.nodes[bound[place]].HasField("asset")
        )


def _older_assets(meta: Any) -> Iterator[Any]:
    """The assets of a TensorFlow 1 model, which has them in a collection."""
    if ASSETS in meta.collection_def:
        from tensorflow.core.protobuf import meta_graph_pb2

        for packed in meta.collection_def[ASSETS].any_list.value:
            yield meta_graph_pb2.AssetFileDef.FromString(packed.value)


def _node_of(tensor: str) -> str:
    """The node that a tensor comes from: `^name` and `name:0` are of `name`."""
    return tensor.lstrip("^").partition(":")[0]
