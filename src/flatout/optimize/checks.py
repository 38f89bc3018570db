"""What an artefact has to pass before it is timed: nothing that fails here is ever recommended.

The questions, in the order in which their answers explain each other: does it answer at all, in the right order and
shape; does it hold the weights; is it quantized, and does it compute, as stated; does it agree with the original on
samples that no converter has seen, in the user's own metric.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement, relative_error
from flatout.routes._route import Contents, Route

Array = np.ndarray[Any, Any]

FEWEST_WEIGHTS = 0.5
"""Share of the original's weights that must be there. Folding makes a few of them vanish, never half."""
SAME = 1e-6
FLOAT32_ERROR = 1e-4
"""Relative error that reordered float32 arithmetic may leave in any model."""
SHARE_OF_FLOAT16 = 0.25
"""What is stated as float32 has to be closer to the original by this than the original is in float16: in some
models small differences grow, and float16 tells how much."""
PINNED = 0.2
"""Share of answers at one end of their range that tells of saturation."""


@dataclass(frozen=True)
class Budget:
    """How much worse than the original an artefact may be, and by which measure."""

    max_drop: float = 0.01
    metric: str | None = None
    """None: agreement with the original's answers, of which 1 − max_drop has to be kept."""
    lower_is_better: bool = False

    def drop(self, value: float, original: float) -> float:
        return value - original if self.lower_is_better else original - value


@dataclass(frozen=True)
class Checked:
    problem: str = ""
    """Empty where it has passed."""
    agreement: float | None = None
    metric: float | None = None
    drop: float | None = None
    samples: int = 0


def contents(route: Route, inside: Contents, parameters: int) -> str:
    """Weights and precision, as they lie in the files."""
    if inside.weights < FEWEST_WEIGHTS * parameters:
        return f"it carries {inside.weights:,} weights; the original has {parameters:,}"
    computes = inside.computes
    if not computes:
        return ""
    told = ", ".join(f"{count} in {name}" for name, count in computes.items())
    if route.precision == "float32" and set(computes) - {"float32"}:
        return f"it is stated as float32, but of its heavy nodes {told} compute"
    wanted = ("int8-weights", "int8") if route.precision == "int8-weights" else (route.precision,)
    if not any(computes.get(name) for name in wanted):
        return f"it is stated as {route.precision}, but none of its heavy nodes is: {told}"
    return ""


def answers(
    route: Route, original: Sequence[Array], given: Sequence[Array], budget: Budget, float16_error: float = 0.0
) -> Checked:
    """The answers to held-out samples, apart from the user's metric."""
    problem = _form(original, given)
    if problem:
        return Checked(problem)
    agreed = min(agreement(original, given))
    count = len(given[0])
    if not _finite_alike(original, given):
        return Checked("it answers NaN or infinity where the original does not", samples=count)
    error = relative_error(original, given)
    far_off = agreed < 1 - max(budget.max_drop, 0.01)
    if far_off and (problem := _order(original, given, agreed) or _saturation(original, given)):
        return Checked(problem, agreed, samples=count)
    if route.precision == "float32" and error > max(FLOAT32_ERROR, SHARE_OF_FLOAT16 * float16_error):
        return Checked(
            f"it is stated as float32, but its answers are off by {error:.1e}: a lower precision, or other weights",
            agreed,
            samples=count,
        )
    if route.precision == "bfloat16" and error < SAME < 0.1 * float16_error:
        return Checked("it is stated as bfloat16, but its answers are those of float32", agreed, samples=count)
    if budget.metric is None and agreed < 1 - budget.max_drop:
        return Checked(
            f"its answers agree with the original's to {agreed:.4f}; {1 - budget.max_drop:g} is wanted",
            agreed,
            samples=count,
        )
    return Checked("", agreed, samples=count)


def in_metric(checked: Checked, value: float, original: float, budget: Budget) -> Checked:
    """The same with the user's metric, of it and of the original on the same samples."""
    drop = budget.drop(value, original) if math.isfinite(value) else math.inf
    problem = checked.problem
    if not problem and drop > budget.max_drop + 1e-12:
        problem = (
            f"{budget.metric} is {value:.4g}, the original's {original:.4g}: {drop:.4g} worse, "
            f"{budget.max_drop:g} is allowed"
        )
    finite = math.isfinite(value)
    return Checked(problem, checked.agreement, value if finite else None, drop if finite else None, checked.samples)


def _form(original: Sequence[Array], given: Sequence[Array]) -> str:
    if len(original) != len(given):
        return f"it gives {len(given)} outputs; the original has {len(original)}"
    shapes = [(one[: len(other)].shape, other.shape) for one, other in zip(original, given, strict=True)]
    if all(one == other for one, other in shapes):
        return ""
    if sorted(str(one[1:]) for one, _ in shapes) == sorted(str(other[1:]) for _, other in shapes):
        return "its outputs come in another order than the original's"
    one, other = next((one, other) for one, other in shapes if one != other)
    return f"an output has the shape {other}; the original's is {one}"


def _finite_alike(original: Sequence[Array], given: Sequence[Array]) -> bool:
    pairs = zip(original, given, strict=True)
    return all(
        np.isfinite(other[np.isfinite(one[: len(other)])]).all() for one, other in pairs if other.dtype.kind == "f"
    )


def _order(original: Sequence[Array], given: Sequence[Array], agreed: float) -> str:
    if not 2 <= len(given) <= 5:
        return ""
    for order in itertools.permutations(range(len(given))):
        turned = [given[i] for i in order]
        alike = all(one.shape[1:] == other.shape[1:] for one, other in zip(original, turned, strict=True))
        if alike and list(order) != sorted(order) and min(agreement(original, turned)) > max(0.9, agreed + 0.1):
            return "its outputs come in another order than the original's"
    return ""


def _saturation(original: Sequence[Array], given: Sequence[Array]) -> str:
    for one, other in zip(original, given, strict=True):
        if other.dtype.kind != "f" or not other.size:
            continue
        for end in (other.max(), other.min()):
            share = float(np.mean(other == end))
            if share > PINNED and share > 2 * float(np.mean(one[: len(other)] == end)) and end != 0:
                return f"it saturates: {share:.0%} of its answers stand at one end of their range"
    return ""
