"""How channels pass through each kind of layer.

A rule is a function `rule(layer, inputs, shapes, ledger) -> [Labels]`: it gets the labels of the layer's inputs and the
shapes of its outputs, and returns the labels of the outputs. It ties, pins and cuts in the ledger. `@follows("Conv2D",
…)` names the layers it is for, `ops=` the operations of `keras.ops`; it also applies to subclasses that override
neither `call` nor `build`. The inputs and outputs of a layer without a rule are pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flatout.optimize.compress.structure.units import Array, Labels, Ledger

Shape = tuple[int | None, ...]
Rule = Callable[[Any, list[Labels], list[Shape], Ledger], list[Labels]]

RULES: dict[tuple[str, str], Rule] = {}
"""By namespace ("layers" or "ops") and class name: `layers.Average` and `ops.Average` are different things."""

PER_ELEMENT = frozenset(
    [
        "linear",
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "swish",
        "sigmoid",
        "hard_sigmoid",
        "hard_silu",
        "hard_swish",
        "tanh",
        "hard_tanh",
        "softplus",
        "softsign",
        "mish",
        "exponential",
        "exp",
        "abs",
        "absolute",
        "square",
        "negative",
        "sqrt",
        "erf",
        "hard_shrink",
        "soft_shrink",
        "tanh_shrink",
        "squareplus",
        "sparse_plus",
        "log_sigmoid",
        "threshold",
    ]
)
"""Activations that treat each value by itself; a softmax, for example, does not."""


def follows(*names: str, ops: tuple[str, ...] = ()) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update({("layers", name): rule for name in names} | {("ops", name): rule for name in ops})
        return rule

    return register


def rule_of(operation: Any) -> Rule | None:
    """The rule of a layer's class, or of the Keras class that it inherits `call` and `build` from."""
    _load()
    for kind in type(operation).__mro__:
        package = kind.__module__.split(".")
        if package[0] == "keras":
            return RULES.get(("layers" if "layers" in package else "ops", kind.__name__))
        if "call" in vars(kind) or "build" in vars(kind):
            return None  # a user's class with behaviour of its own
    return None


def per_element(function: Any) -> bool:
    if function is None:
        return True
    module = getattr(function, "__module__", "") or ""
    return getattr(function, "__name__", "") in PER_ELEMENT and module.split(".")[0] == "keras"


def at(labels: Labels, axis: int, ledger: Ledger, why: str) -> Array:
    """The units along an axis. Labels along another axis cannot be followed and are pinned."""
    axis %= max(len(labels.shape), 1)
    if labels.axis == axis:
        return labels.units
    ledger.pin(labels.units, why)
    size = labels.shape[axis] if labels.shape else None
    return ledger.fixed(size or 0, why)


def channel_axis(layer: Any, rank: int) -> int:
    """The axis of the channels by the layer's data format."""
    return 1 if getattr(layer, "data_format", None) == "channels_first" else rank - 1


def _load() -> None:
    from flatout.optimize.compress.structure.rules import (  # noqa: F401  # they register themselves
        elementwise,
        merging,
        normalization,
        shape,
        weighted,
    )
