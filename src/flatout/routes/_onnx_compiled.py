"""Functions that are compiled by XLA inside a model, as plain parts of its graph.

Keras calls a grouped convolution that way, as TensorFlow's own kernels cannot train it. tf2onnx does not look into such
a call; once nothing asks for XLA any more, TensorFlow inlines it like any other, and the convolution can be seen.
"""

from __future__ import annotations

from typing import Any

from flatout.subject import graph

MUST = "_XlaMustCompile"


def inlined(function: Any) -> Any:
    """A concrete function with constants for weights, or the one that was given if XLA is not called in it."""
    if not any(MUST in one.attr for one in function.graph.as_graph_def().library.function):
        return function
    frozen = graph.frozen_from(function)
    definition = frozen.graph.as_graph_def()
    renamed = {}
    for one in definition.library.function:
        if MUST in one.attr:
            renamed[one.signature.name] = f"{one.signature.name}_plain"  # the old name is taken, with XLA
            one.signature.name = renamed[one.signature.name]
            del one.attr[MUST]
            one.attr.pop("_noinline", None)
    for node in (*definition.node, *(node for one in definition.library.function for node in one.node_def)):
        called = node.attr["f"].func.name if "f" in node.attr else ""
        if called in renamed:
            node.attr["f"].func.name = renamed[called]
            node.attr.pop(MUST, None)
    return graph.function_of(definition, frozen)
