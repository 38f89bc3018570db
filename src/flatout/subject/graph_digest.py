"""The digest of a frozen graph: the same for graphs that compute the same from the same weights, whatever their names.

TensorFlow names and orders nodes and captured variables differently each time that a model is traced and saved, so
files cannot be compared. The nodes are numbered in the order in which a walk from the outputs meets them; the digest is
of what each does, of its values and of where its inputs come from. Equal digests mean equal graphs. Different ones may
belong to graphs that do the same: then something is only done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAMES_ONLY = ("_class", "_output_shapes", "_gradient_op_type", "_has_manual_control_dependencies")
"""Attributes that name other nodes, or are for gradients and tracing, and do not change what is computed."""
RENAMED = ("frame_name", "shared_name")
"""Attributes that are made up: what counts is which nodes have the same."""


def digest(function: Any, inputs: int) -> str:
    """Of a concrete function without variables; empty where it holds something besides constants, such as tables."""
    if len(function.inputs) != inputs or any(one.dtype.name == "resource" for one in function.inputs):
        return ""
    definition = function.graph.as_graph_def()
    library = {one.signature.name: one for one in definition.library.function}
    made = hashlib.sha256()
    arguments = {one.op.name: number for number, one in enumerate(function.inputs)}
    outputs = [one.name for one in function.outputs]
    for part in _Walk(definition.node, library, arguments).parts(outputs):
        made.update(part)
    return made.hexdigest()


class _Walk:
    def __init__(
        self,
        nodes: Iterable[Any],
        library: Mapping[str, Any],
        arguments: Mapping[str, int],
        within: tuple[str, ...] = (),
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.library = library
        self.arguments = arguments
        self.within = within
        self.numbers: dict[str, int] = {}
        self.made_up: dict[bytes, int] = {}

    def parts(self, outputs: Sequence[str]) -> Iterable[bytes]:
        """What the digest is of: each node that the outputs need, once, and then the outputs."""
        waiting = [self._split(one)[0] for one in reversed(outputs)]
        while waiting:
            name = waiting.pop()
            if name in self.numbers:
                continue
            self.numbers[name] = len(self.numbers)
            if name in self.nodes:
                waiting += [self._split(one)[0] for one in reversed(self.nodes[name].input)]
        for name in self.numbers:
            yield from self._node(name)
        for one in outputs:
            yield self._place(one)

    def _node(self, name: str) -> Iterable[bytes]:
        if name in self.arguments:
            yield f"argument {self.arguments[name]};".encode()
        if name not in self.nodes:
            return
        node = self.nodes[name]
        yield f"{node.op}:{node.device};".encode()
        for key in sorted(node.attr):
            if key not in NAMES_ONLY:
                yield f"{key}=".encode()
                yield self._attribute(key, node.attr[key])
        yield f"{len(node.input)} inputs;".encode()
        for one in node.input:
            yield self._place(one)

    def _attribute(self, key: str, value: Any) -> bytes:
        content: bytes = value.SerializeToString(deterministic=True)
        if key in RENAMED:
            return f"name {self.made_up.setdefault(content, len(self.made_up))};".encode()
        functions: list[Any] = [value.func] if value.HasField("func") else list(value.list.func)
        if not functions:
            return f"{len(content)}:".encode() + content
        return b"".join([self._function(one) for one in functions])

    def _function(self, called: Any) -> bytes:
        keys = [key for key in sorted(called.attr) if key not in NAMES_ONLY]
        attributes = b"".join([f"{key}=".encode() + self._attribute(key, called.attr[key]) for key in keys])
        body = self.library.get(called.name)
        if body is None or called.name in self.within:
            return str(called.name).encode() + attributes
        arguments = {one.name: number for number, one in enumerate(body.signature.input_arg)}
        outputs = [body.ret[one.name] for one in body.signature.output_arg]
        outputs += [f"^{body.control_ret[one]}" for one in sorted(body.control_ret)]
        walk = _Walk(body.node_def, self.library, arguments, (*self.within, called.name))
        return hashlib.sha256(b"".join([attributes, *walk.parts(outputs)])).digest()

    def _place(self, text: str) -> bytes:
        """Where a value comes from: a node by its number, and which of its outputs."""
        name, output = self._split(text)
        return f"{self.numbers[name]}.{output};".encode()

    @staticmethod
    def _split(text: str) -> tuple[str, str]:
        if text.startswith("^"):
            return text[1:], "control"
        name, _, output = text.partition(":")
        return name, output or "0"
