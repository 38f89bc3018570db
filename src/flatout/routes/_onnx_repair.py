"""What tf2onnx writes wrong, or so that no runtime recognises it, put right in the model it wrote."""

from __future__ import annotations

from typing import Any

from flatout.routes._onnx_gelu import Erfc
from flatout.routes._onnx_graph import drop_unused, graphs
from flatout.routes._onnx_layer_normalization import Decomposed, Instance


def repair(model: Any) -> None:
    """In place. The model has to be of opset 17 or later."""
    for graph in graphs(model.graph):
        for rewriting in (Erfc, Instance, Decomposed):
            rewriting(graph).mend()
        drop_unused(graph)
