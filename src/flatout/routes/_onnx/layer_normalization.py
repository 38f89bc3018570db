"""Turns a decomposed layer normalization back into one LayerNormalization node: one kernel in place of a dozen.

tf2onnx writes it in two forms: as Keras 3 computes it, with means as pooling, and as an InstanceNormalization with a
scale of ones and a shift of zeros, followed by the real scale and shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.routes._onnx.graph import GraphRewriter


class _Normalization(GraphRewriter):
    def replace_with_node(self, last: Any, x: str, scale: str, shift: str, epsilon: float) -> None:
        """Put a LayerNormalization in place of the last node of the decomposed form."""
        from onnx import helper

        base = last.name or last.output[0]
        vectors = [self._vector(name, f"{base}/{what}") for name, what in ((scale, "scale"), (shift, "shift"))]
        made = helper.make_node(
            "LayerNormalization", [x, *vectors], list(last.output), name=base, axis=-1, epsilon=epsilon
        )
        self.replace(last, made)

    def _vector(self, name: str, flat: str) -> str:
        value = self.constant(name)
        return name if value.ndim == 1 else self.add_constant(flat, np.ascontiguousarray(value.reshape(-1)))

    def is_vector(self, name: str) -> bool:
        """Whether it is a constant whose only axis longer than one is the last."""
        value = self.constant(name)
        return value is not None and value.ndim > 0 and value.size == value.shape[-1]


class DecomposedForm(_Normalization):
    """y = x·g + (b − mean·g), where g = scale / √(variance + ε)."""

    def apply(self) -> None:
        for node in [node for node in self.graph.node if node.op_type == "Reciprocal"]:
            found = self._match(node)
            if found is not None:
                self.replace_with_node(*found)

    def _match(self, inverse: Any) -> tuple[Any, str, str, str, float] | None:
        root = self.producer(inverse.input[0], "Sqrt")
        total = root and self.producer(root.input[0], "Add")
        if not total:
            return None
        variance, epsilon = self.constant_last(total)
        moments = self._moments(variance)
        small = self.scalar(epsilon)
        scaling = self.only_consumer(inverse.output[0], "Mul")
        if moments is None or small is None or scaling is None:
            return None
        (x, mean), (_, scale) = moments, self.constant_last(scaling)
        users = self.consumers.get(scaling.output[0], [])
        direct = next((user for user in users if user.op_type == "Mul" and x in user.input), None)
        moved = next((user for user in users if user is not direct and self._negated(user, mean)), None)
        shifting = moved and self.only_consumer(moved.output[0], "Add")
        last = direct and self.only_consumer(direct.output[0], "Add")
        if not shifting or not last or len(users) != 2 or shifting.output[0] not in last.input:
            return None
        _, shift = self.constant_last(shifting)
        return (last, x, scale, shift, small) if self.is_vector(scale) and self.is_vector(shift) else None

    def _moments(self, variance: str) -> tuple[str, str] | None:
        """x and its mean, if this tensor is mean((x − mean)²)."""
        pooled = self._mean(variance)
        square = pooled and self.producer(pooled.input[0], "Mul")
        difference = square and square.input[0] == square.input[1] and self.producer(square.input[0], "Sub")
        if not difference:
            return None
        x, mean = difference.input
        centre = self._mean(mean)
        return (x, mean) if centre and centre.input[0] == x else None

    def _mean(self, name: str) -> Any:
        """The node, if it is a mean over the last axis: for rank 3, pooling is; `is_vector` rejects higher ranks."""
        found = self.producer(name, "GlobalAveragePool")
        if found:
            return found
        found = self.producer(name, "ReduceMean")
        if not found:
            return None
        attributes = {item.name: item for item in found.attribute}
        axes = list(attributes["axes"].ints) if "axes" in attributes else []
        keeps_axis = "keepdims" not in attributes or attributes["keepdims"].i == 1
        return found if keeps_axis and axes in ([-1], [self.ranks.get(found.input[0], 0) - 1]) else None

    def _negated(self, node: Any, mean: str) -> bool:
        producers = [self.producer(name, "Neg") for name in node.input]
        return node.op_type == "Mul" and any(one and one.input[0] == mean for one in producers)


class InstanceForm(_Normalization):
    """An InstanceNormalization without scale and shift of its own, followed by a scale and a shift."""

    def apply(self) -> None:
        for node in [node for node in self.graph.node if node.op_type == "InstanceNormalization"]:
            scaling = self.only_consumer(node.output[0], "Mul")
            shifting = scaling and self.only_consumer(scaling.output[0], "Add")
            if not shifting or not self._is_filled(node.input[1], 1) or not self._is_filled(node.input[2], 0):
                continue
            (_, scale), (_, shift) = self.constant_last(scaling), self.constant_last(shifting)
            if self.is_vector(scale) and self.is_vector(shift):
                epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-5)
                self.replace_with_node(shifting, node.input[0], scale, shift, epsilon)

    def _is_filled(self, name: str, number: int) -> bool:
        """Whether all elements of the tensor are this number: a constant or a ConstantOfShape."""
        value = self.constant(name)
        if value is not None:
            return bool((value == number).all())
        node = self.producer(name, "ConstantOfShape")
        if not node:
            return False
        attributes = next((self.to_array(item.t) for item in node.attribute if item.name == "value"), np.zeros(1))
        return bool((attributes == number).all())
