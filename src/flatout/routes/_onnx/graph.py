"""Reads and rewrites an ONNX graph: producers and consumers of tensors, and constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def graphs(graph: Any) -> Iterator[Any]:
    """The graph and all graphs inside its nodes (loop bodies, branches)."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)
            for inner in attribute.graphs:
                yield from graphs(inner)


class GraphRewriter:
    """One rewrite of a graph; subclasses define `apply`."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        self.graph = graph
        self.producers = {output: node for node in graph.node for output in node.output}
        self.consumers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)
        values = (*graph.input, *graph.value_info, *graph.output)
        self.ranks = {item.name: len(item.type.tensor_type.shape.dim) for item in values}
        """Ranks of the tensors whose shape the file gives."""
        self.constants = {item.name: item for item in graph.initializer}
        self.to_array = numpy_helper.to_array

    def constant(self, name: str) -> Any:
        """The value of a constant as an array; None for a tensor that is computed."""
        if name in self.constants:
            return self.to_array(self.constants[name])
        node = self.producers.get(name)
        if node is not None and node.op_type == "Constant" and node.attribute[0].HasField("t"):
            return self.to_array(node.attribute[0].t)
        return None

    def scalar(self, name: str) -> float | None:
        value = self.constant(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def add_constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def producer(self, name: str, kind: str) -> Any:
        """The node that produces the tensor, if it is of this kind."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type == kind else None

    def constant_last(self, node: Any) -> tuple[str, str]:
        """The two inputs of a commutative node; a constant is the second."""
        one, other = node.input
        return (other, one) if self.constant(one) is not None else (one, other)

    def only_consumer(self, name: str, kind: str) -> Any:
        consumers = self.consumers.get(name, [])
        is_output = name in {output.name for output in self.graph.output}
        return consumers[0] if len(consumers) == 1 and consumers[0].op_type == kind and not is_output else None

    def replace(self, node: Any, *others: Any) -> None:
        index = list(self.graph.node).index(node)
        self.graph.node.remove(node)
        for offset, other in enumerate(others):
            self.graph.node.insert(index + offset, other)


def drop_unused(graph: Any) -> None:
    """Remove the nodes whose outputs nothing reads, and then the constants that nothing reads."""
    while True:
        read = {name for inner in graphs(graph) for node in inner.node for name in node.input}
        read |= {output.name for inner in graphs(graph) for output in inner.output}
        unread = [node for node in graph.node if not any(name in read for name in node.output)]
        for node in unread:
            graph.node.remove(node)
        if not unread:
            break
    for item in [item for item in graph.initializer if item.name not in read]:
        graph.initializer.remove(item)
