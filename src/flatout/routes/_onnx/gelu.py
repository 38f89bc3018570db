"""Replaces `Erfc`, which ONNX does not have: tf2onnx writes the node and reports success.

TensorFlow computes GELU with it. That becomes `1 + Erf(x / √2)`, the form that the runtimes recognize and fuse. Any
other Erfc becomes `1 − Erf`.
"""

from __future__ import annotations

import math

import numpy as np

from flatout.routes._onnx.graph import GraphRewriter


class Erfc(GraphRewriter):
    def apply(self) -> None:
        from onnx import helper

        for node in [node for node in self.graph.node if node.op_type == "Erfc"]:
            base, (argument,), (output,) = node.name or node.output[0], node.input, node.output
            one = self.add_constant(f"{base}/one", np.array(1, np.float32))
            positive = self._gelu_input(argument)
            if positive is None:
                erf = helper.make_node("Erf", [argument], [f"{base}/erf"])
                self.replace(node, erf, helper.make_node("Sub", [one, f"{base}/erf"], [output], name=base))
                continue
            root = self.add_constant(f"{base}/root", np.array(math.sqrt(2), np.float32))
            self.replace(
                node,
                helper.make_node("Div", [positive, root], [f"{base}/scaled"]),
                helper.make_node("Erf", [f"{base}/scaled"], [f"{base}/erf"]),
                helper.make_node("Add", [f"{base}/erf", one], [output], name=base),
            )

    def _gelu_input(self, name: str) -> str | None:
        """x, if this tensor is −x·√½, with negation and product in either order."""
        outer = self.producer(name, "Neg")
        product = self.producer(outer.input[0] if outer else name, "Mul")
        if not product:
            return None
        x, factor = self.constant_last(product)
        inner = self.producer(x, "Neg")
        value = self.scalar(factor)
        if value is None or not math.isclose(abs(value), math.sqrt(0.5), rel_tol=1e-5):
            return None
        if inner:
            x, value = str(inner.input[0]), -value
        return x if (value < 0) != bool(outer) else None
