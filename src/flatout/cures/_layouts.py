"""Computes a value of a graph with its axes in another order, without the transposes that changed the order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Order = tuple[int, ...]

POINTWISE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("Abs", "Erf", "Exp", "Expm1", "Floor", "Identity", "Log", "Log1p", "LogicalNot", "Neg", "Reciprocal"),
            *("Elu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"),
            *("EluGrad", "ReluGrad", "Relu6Grad", "SeluGrad", "SigmoidGrad", "SoftplusGrad", "SoftsignGrad"),
            *("Round", "Rsqrt", "RsqrtGrad", "Sign", "Sqrt", "SqrtGrad", "Square", "StopGradient", "TanhGrad"),
            *("Add", "AddV2", "Div", "DivNoNan", "Maximum", "Minimum", "Mul", "MulNoNan", "Pow", "RealDiv", "Sub"),
            *("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "NotEqual"),
            *("SelectV2", "SquaredDifference"),
        ),
        (),
    ),
    "Cast": ("DstT", "Truncate"),
    "LeakyRelu": ("alpha",),
    "LeakyReluGrad": ("alpha",),
}
"""Elementwise operations, and those of their attributes that do not follow from the inputs."""

SMALL = 8192
"""Elements up to which a value (a bias, a scale) is transposed on its own."""

MOST = 200
"""Operations that are searched backwards at most."""

_NO, _EITHER, _TURNED = range(3)


@dataclass(frozen=True)
class _Passage:
    """An operation that commutes with a transpose: with transposed inputs it gives its result, transposed."""

    inputs: Sequence[Any]
    made: Callable[[list[Any]], Any]


class Layouts:
    def __init__(self, tensorflow: ModuleType, transpose: Callable[..., Any]) -> None:
        self.tf, self._transpose = tensorflow, transpose

    def begin_anew(self) -> None:
        """A tape watches from here on: what the graph holds so far is neither searched nor reused."""
        graph = self.tf.compat.v1.get_default_graph()
        graph._flatout_begun = graph.version + 1

    def turned(self, value: Any, order: Order) -> Any | None:
        """`transpose(value, order)` where that undoes an earlier transpose; None elsewhere."""
        if not self._is_ours(value) or self._reaches(value, order, {}) != _TURNED:
            return None
        return self._built(value, order)

    def remember(self, value: Any, order: Order, turned: Any) -> None:
        """Keep a transpose that had to be made, for others that need the same one."""
        if self._is_ours(value):
            _kept(value.graph).setdefault((value.ref(), order), turned)

    def way_back(self, value: Any) -> Order | None:
        """The order of axes that a value had before it, or what it was computed from, was transposed."""
        waiting, seen = [value], set[Any]()
        while waiting and len(seen) < MOST:
            value = waiting.pop()
            if not self._is_ours(value) or value.ref() in seen:
                continue
            seen.add(value.ref())
            if value.op.type == "Transpose":
                order = constant(self.tf, value.op.inputs[1])
                return inverse(order) if order else None
            rank = value.shape.rank
            passage = self._passage(value.op, tuple(range(rank))) if rank else None
            if passage is not None:
                waiting += [item for item in passage.inputs if item.shape.rank == rank and not _is_small(item)]
        return None

    def _is_ours(self, value: Any) -> bool:
        """Whether the graph that is being built computes it, outside of TF1's loops and conditions."""
        if not hasattr(value, "op") or not hasattr(value, "graph"):
            return False
        graph = self.tf.compat.v1.get_default_graph()
        return value.graph is graph and value.op._get_control_flow_context() is graph._get_control_flow_context()

    def _reaches(self, value: Any, order: Order, seen: dict[Any, int]) -> int:
        """Whether everything that a value is computed from was transposed the other way, or works in either order."""
        key = value.ref()
        if key not in seen:
            seen[key] = _EITHER if _is_small(value) else _NO
            if self._there(value, order) is not None:
                seen[key] = _TURNED
            elif self._is_ours(value) and len(seen) < MOST:
                passage = self._passage(value.op, order) if value.shape.rank == len(order) else None
                found = [self._reaches(item, order, seen) for item in passage.inputs] if passage else [_NO]
                if _NO not in found and _TURNED in found:
                    seen[key] = _TURNED
        return seen[key]

    def _there(self, value: Any, order: Order) -> Any | None:
        """The transposed value, if the graph has it: the input of an inverse transpose, or one that was kept."""
        found = _kept(value.graph).get((value.ref(), order))
        if found is None and value.op.type == "Transpose" and _is_new(value):
            before = constant(self.tf, value.op.inputs[1])
            if before is not None and len(before) == len(order) and inverse(before) == order:
                return value.op.inputs[0]
        return found if found is not None and _is_new(found) else None

    def _built(self, value: Any, order: Order) -> Any:
        found = self._there(value, order)
        if found is None:
            passage = self._passage(value.op, order) if value.shape.rank == len(order) else None
            if passage is not None and self._reaches(value, order, {}) == _TURNED:
                found = passage.made([self._built(item, order) for item in passage.inputs])
            else:
                found = self._small(value, order)
            _kept(value.graph)[value.ref(), order] = found
        return found

    def _small(self, value: Any, order: Order) -> Any:
        shape = value.shape.as_list()
        if not shape:
            return value
        if len(shape) < len(order):  # it broadcasts over the first axes
            value = self.tf.reshape(value, [1] * (len(order) - len(shape)) + shape)
        return self._transpose(value, order)

    def _passage(self, op: Any, order: Order) -> _Passage | None:
        if not _is_new(op) or op.control_inputs or _has_its_own_gradient(op):
            return None
        raw, inputs = self.tf.raw_ops, list(op.inputs)
        if op.type in POINTWISE:
            names = [item.name for item in op.op_def.input_arg]
            given = {name: op.get_attr(name) for name in POINTWISE[op.type]}
            call = getattr(raw, op.type)
            return _Passage(inputs, lambda turned: call(**dict(zip(names, turned, strict=True)), **given))
        if op.type == "AddN":
            return _Passage(inputs, lambda turned: raw.AddN(inputs=turned))
        if op.type == "ConcatV2":
            axis = constant(self.tf, inputs[-1])
            if axis is None:
                return None
            moved_axis = order.index(axis[0] % len(order))
            return _Passage(inputs[:-1], lambda turned: raw.ConcatV2(values=turned, axis=moved_axis))
        if op.type == "Pad":
            sides = self.tf.get_static_value(inputs[1])
            if sides is None:
                return None
            return _Passage(inputs[:1], lambda turned: raw.Pad(input=turned[0], paddings=sides[list(order)]))
        return None


def _kept(graph: Any) -> dict[Any, Any]:
    """What was built in a graph so far, by value and order. It lives as long as the graph."""
    if not hasattr(graph, "_flatout_turned"):
        graph._flatout_turned = {}
    kept: dict[Any, Any] = graph._flatout_turned
    return kept


def _is_new(made: Any) -> bool:
    """Whether a tensor or an operation was created after the last tape began to watch."""
    op = getattr(made, "op", made)
    return bool(op._id > getattr(op.graph, "_flatout_begun", -1))


def _has_its_own_gradient(op: Any) -> bool:
    """Whether its gradient was overridden."""
    try:
        return bool(op.get_attr("_gradient_op_type"))
    except ValueError:
        return False


def constant(tf: ModuleType, value: Any) -> Order | None:
    """Integers that are known while the graph is built: a `perm`, axes."""
    if hasattr(value, "op") and value.op.type == "InvertPermutation":
        inner = constant(tf, value.op.inputs[0])
        return inverse(inner) if inner else None
    known = tf.get_static_value(value) if tf.is_tensor(value) else value
    if known is None:
        return None
    return tuple(int(number) for number in (known.ravel() if hasattr(known, "ravel") else _row(known)))


def _row(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple, range)) else (value,)


def inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _is_small(value: Any) -> bool:
    size = value.shape.num_elements()
    return size is not None and size <= SMALL
