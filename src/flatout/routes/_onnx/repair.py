"""Repairs models written by tf2onnx: invalid nodes, and patterns that no runtime recognizes."""

from __future__ import annotations

from typing import Any

from flatout.routes._onnx.gelu import Erfc
from flatout.routes._onnx.graph import drop_unused, graphs
from flatout.routes._onnx.layer_normalization import DecomposedForm, InstanceForm


def repair(model: Any) -> None:
    """Repair a model of opset 17 or later in place."""
    for graph in graphs(model.graph):
        for rewriter in (Erfc, InstanceForm, DecomposedForm):
            rewriter(graph).apply()
        drop_unused(graph)
