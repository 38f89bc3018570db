"""Inlines the functions of a model that XLA must compile.

Keras calls a grouped convolution in such a function, because TensorFlow's own kernels cannot train it. tf2onnx does not
look into the call. Without the attribute that demands XLA, TensorFlow inlines the function and tf2onnx sees the
convolution.
"""

from __future__ import annotations

from typing import Any

from flatout.subject import graph

MUST_COMPILE = "_XlaMustCompile"


def inline(function: Any) -> Any:
    """A concrete function with constants as weights, or the given one if nothing in it must be compiled by XLA."""
    if not any(MUST_COMPILE in one.attr for one in function.graph.as_graph_def().library.function):
        return function
    frozen = graph.frozen_from(function)
    definition = frozen.graph.as_graph_def()
    renamed = {}
    for one in definition.library.function:
        if MUST_COMPILE in one.attr:
            renamed[one.signature.name] = f"{one.signature.name}_plain"  # the old name belongs to the compiled function
            one.signature.name = renamed[one.signature.name]
            del one.attr[MUST_COMPILE]
            one.attr.pop("_noinline", None)
    for node in (*definition.node, *(node for one in definition.library.function for node in one.node_def)):
        called = node.attr["f"].func.name if "f" in node.attr else ""
        if called in renamed:
            node.attr["f"].func.name = renamed[called]
            node.attr.pop(MUST_COMPILE, None)
    return graph.function_from_graph(definition, frozen)
