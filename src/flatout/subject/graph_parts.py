"""Parts of the subject's frozen graph as functions: from some of its tensors to others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flatout.subject import graph, stages
from flatout.subject.graph_function import Ends, GraphFunction, Table, placeholder
from flatout.subject.subject import Subject


@dataclass(frozen=True)
class Parted:
    """The frozen graph of a subject, and where it is cut."""

    graph: Any
    definition: Any
    nodes: Mapping[str, stages.Node]
    cut: stages.Cut
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tables: tuple[Table, ...]

    def function(
        self,
        given: Sequence[str],
        wanted: Sequence[str],
        derived: Mapping[str, Callable[[Sequence[Any]], Any]] | None = None,
        within: Collection[str] | None = None,
    ) -> GraphFunction:
        """A function from the tensors `given` to those `wanted`, made of the nodes `within` (None: all) and constants.

        `derived`: further tensors that are not computed by the graph.
        """
        derived = derived or {}
        part = self._part([*given, *derived], wanted, within)
        names = {node.name for node in part.node}
        tables = [table for table in self.tables if table.node in names]
        ends = Ends({name: _safe(name) for name in given}, {name: self._end(name, given) for name in wanted})
        made = GraphFunction(part, ends, tables, {_safe(name): compute for name, compute in derived.items()})
        made.specifications = self._specifications(given)
        return made

    def is_table(self, tensor: str) -> bool:
        return str(self._tensor(tensor).dtype.base_dtype.name) == "resource"

    def _end(self, tensor: str, given: Sequence[str]) -> str:
        return _safe(tensor) if tensor in given else tensor

    def _part(self, given: Sequence[str], wanted: Sequence[str], within: Collection[str] | None) -> Any:
        import tensorflow as tf

        sources = {node.name: node for node in self.definition.node}
        part = tf.compat.v1.GraphDef(versions=self.definition.versions, library=self.definition.library)
        for tensor in given:
            placeholder(part.node.add(name=_safe(tensor).partition(":")[0]), self._tensor(tensor).dtype)
        waiting = [tensor.partition(":")[0] for tensor in wanted if tensor not in given]
        done: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in done:
                continue
            done.add(name)
            node = part.node.add()
            node.CopyFrom(sources[name])
            kept = [one for one in node.input if not one.startswith("^") or _reaches(one, within, self.nodes)]
            del node.input[:]
            node.input.extend(_safe(_tensor_name(one)) if _tensor_name(one) in given else one for one in kept)
            waiting += [one.lstrip("^").partition(":")[0] for one in kept if _tensor_name(one) not in given]
        return part

    def _tensor(self, name: str) -> Any:
        return self.graph.get_tensor_by_name(name)

    def _specifications(self, given: Sequence[str]) -> list[Any]:
        import tensorflow as tf

        return [tf.TensorSpec(self._tensor(name).shape, self._tensor(name).dtype) for name in given]


def parted(subject: Subject) -> Parted | None:
    """The subject's graph and where to cut it; None where it cannot be cut."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    concrete = graph.concrete(subject)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    nodes = stages.nodes_of(frozen.graph)
    outputs = tuple(tensor.name for tensor in frozen.outputs)
    cut = stages.cut(nodes, outputs)
    if cut is None:
        return None
    inputs = tuple(tensor.name for tensor in frozen.inputs[: len(subject.inputs)])
    tables = tuple(_tables(concrete, frozen))
    return Parted(frozen.graph, frozen.graph.as_graph_def(), nodes, cut, inputs, outputs, tables)


def _tables(concrete: Any, frozen: Any) -> list[Table]:
    """The contents of the tables that the function captured."""
    import tensorflow as tf
    from tensorflow.python.ops import gen_lookup_ops

    handles = {internal.name: external for external, internal in concrete.graph.captures}
    tables = []
    for tensor in frozen.inputs:
        if tensor.dtype != tf.resource or tensor.name not in handles:
            continue
        lookup = _lookup(frozen.graph, tensor)
        if lookup is None:
            continue
        types = [lookup.get_attr(name) for name in ("Tin", "Tout")]
        keys, values = gen_lookup_ops.lookup_table_export_v2(handles[tensor.name], *types)
        node = tensor.name.partition(":")[0]
        tables.append(Table(node, keys.numpy(), values.numpy(), types[0].name, types[1].name))
    return tables


def _lookup(graph: Any, handle: Any) -> Any:
    """The first lookup in a table: it tells the types of keys and values."""
    waiting, seen = [handle], set()
    while waiting:
        tensor = waiting.pop()
        for reader in tensor.consumers():
            if reader.type == "LookupTableFindV2":
                return reader
            if reader.name not in seen:
                seen.add(reader.name)
                waiting += reader.outputs
    return None


def _reaches(control: str, within: Collection[str] | None, nodes: Mapping[str, stages.Node]) -> bool:
    """Whether a control dependency stays within the part."""
    return within is None or control[1:] in within


def _tensor_name(text: str) -> str:
    return text if ":" in text or text.startswith("^") else f"{text}:0"


def _safe(tensor: str) -> str:
    """The placeholder that stands for a tensor in a part: another name, so that its node may be there as well."""
    node, _, index = tensor.partition(":")
    return f"given/{node}_{index}:0"
