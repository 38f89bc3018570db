"""The checks that an artefact has to pass before it is timed. Nothing that fails one is recommended.

In this order, because an earlier failure explains a later one: outputs have the right number, order and shape; the
weights are there; it is quantized and computes as its route states; its answers to samples that no converter has seen
agree with the original's, and satisfy the user's metric.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement, relative_error
from flatout.measure.drop import GROUPS, Drop, drop_of
from flatout.routes._route import Contents, Route

Array = np.ndarray[Any, Any]

MIN_SHARE_OF_WEIGHTS = 0.5
"""Share of the original's weights that must be there. Folding removes a few of them, never half."""
SAME_ERROR = 1e-6
FLOAT32_ERROR = 1e-4
"""Relative error that reordered float32 arithmetic may leave in any model."""
SHARE_OF_FLOAT16 = 0.25
"""The error of a float32 artefact may be at most this share of the original's own error in float16: in some models
small differences grow, and the error in float16 shows how much."""
FEWEST_FOR_BOUND = 8
"""Samples from which on the agreement has an interval."""
SATURATED_SHARE = 0.2
"""Share of answers at one end of their range from which on they count as saturated."""


@dataclass(frozen=True)
class AccuracyBudget:
    """How much worse than the original an artefact may be, and by which metric."""

    max_drop: float = 0.01
    metric: str | None = None
    """None: agreement with the original's answers, which has to be at least 1 − max_drop."""
    lower_is_better: bool = False

    def drop(self, value: float, original: float) -> float:
        return value - original if self.lower_is_better else original - value


@dataclass(frozen=True)
class CheckResult:
    problem: str = ""
    """Empty if it passed."""
    agreement: float | None = None
    metric: float | None = None
    drop: float | None = None
    samples: int = 0
    wrong_precision: bool = False
    """The answers are not those of the precision that the route states."""
    error: float = 0.0
    """Relative, of the answers."""
    bound: float | None = None
    """The drop (of the agreement, without a metric) is at most this, with 95 %; None where that was not asked."""


def check_contents(route: Route, contents: Contents, parameters: int) -> str:
    """What is wrong with the weights and the precision in the files; empty if nothing is."""
    if contents.weights < MIN_SHARE_OF_WEIGHTS * parameters:
        return f"it contains {contents.weights:,} weights; the original has {parameters:,}"
    computes = contents.computes
    if not computes:
        return ""
    counts = ", ".join(f"{count} in {name}" for name, count in computes.items())
    if route.precision == "float32" and set(computes) - {"float32"}:
        return f"it is stated as float32, but its heavy nodes compute {counts}"
    expected = ("int8-weights", "int8") if route.precision == "int8-weights" else (route.precision,)
    if not any(computes.get(name) for name in expected):
        return f"it is stated as {route.precision}, but none of its heavy nodes is: {counts}"
    return ""


def check_answers(
    route: Route, original: Sequence[Array], given: Sequence[Array], budget: AccuracyBudget, float16_error: float = 0.0
) -> CheckResult:
    """Check the answers to held-out samples, apart from the user's metric."""
    problem = _wrong_form(original, given)
    if problem:
        return CheckResult(problem)
    agreed = min(agreement(original, given))
    count = len(given[0])
    if not _finite_where_original_is(original, given):
        return CheckResult("it answers NaN or infinity where the original does not", samples=count)
    far_off = agreed < 1 - max(budget.max_drop, 0.01)
    if far_off and (problem := _wrong_order(original, given, agreed) or _saturation(original, given)):
        return CheckResult(problem, agreed, samples=count)
    error = relative_error(original, given)
    if problem := _wrong_precision(route, error, float16_error):
        return CheckResult(problem, agreed, samples=count, wrong_precision=True, error=error)
    if budget.metric is None and agreed < 1 - budget.max_drop:
        problem = f"its answers agree with the original's to {agreed:.4f}; at least {1 - budget.max_drop:g} is required"
    return CheckResult(problem, agreed, samples=count, error=error)


def _wrong_precision(route: Route, error: float, float16_error: float) -> str:
    if route.precision == "float32" and error > max(FLOAT32_ERROR, SHARE_OF_FLOAT16 * float16_error):
        return f"it is stated as float32, but its answers are off by {error:.1e}: a lower precision, or other weights"
    if route.precision == "bfloat16" and error < SAME_ERROR < 0.1 * float16_error:
        return "it is stated as bfloat16, but its answers are those of float32"
    return ""


def check_metric(checked: CheckResult, value: float, original: float, budget: AccuracyBudget) -> CheckResult:
    """Add the user's metric, of the artefact and of the original on the same samples."""
    drop = budget.drop(value, original) if math.isfinite(value) else math.inf
    problem = checked.problem
    if not problem and drop > budget.max_drop + 1e-12:
        problem = (
            f"{budget.metric} is {value:.4g}, the original's {original:.4g}: {drop:.4g} worse, "
            f"{budget.max_drop:g} is allowed"
        )
    finite = math.isfinite(value)
    return replace(checked, problem=problem, metric=value if finite else None, drop=drop if finite else None)


def check_drop_bound(checked: CheckResult, values: Mapping[str, Any], budget: AccuracyBudget) -> CheckResult:
    """Accept the drop of the metric only where the upper end of its interval is within what is allowed.

    `values`: the metric of the artefact and of the original, of all samples and without each group of them.
    """
    if checked.problem or checked.drop is None:
        return checked
    pairs = zip(values.get("without", ()), values.get("original_without", ()), strict=True)
    without = [budget.drop(float(mine), float(its)) for mine, its in pairs]
    known = [one for one in without if math.isfinite(one)]
    # Right or wrong: each sample moves such a metric by 1 / n. What is the same up to rounding moves none.
    shares = all(0 <= float(values[name]) <= 1 for name in ("metric", "original")) and not budget.lower_is_better
    counts = shares and checked.error > FLOAT32_ERROR
    drop = drop_of(checked.drop, known, checked.samples, counts)
    seen = f"{budget.metric} is {checked.metric:.4g}, the original's {float(values['original']):.4g}"
    return _bounded(checked, drop, f"{seen}, but", budget)


def check_agreement_bound(
    checked: CheckResult, original: Sequence[Array], given: Sequence[Array], budget: AccuracyBudget
) -> CheckResult:
    """The same for the agreement with the original's answers, where there is no metric."""
    if checked.problem or checked.agreement is None or checked.samples < FEWEST_FOR_BOUND:
        return checked
    groups = min(GROUPS, checked.samples // 2)
    parts = [np.arange(checked.samples) % groups != group for group in range(groups)]
    original = [array[: checked.samples] for array in original]
    without = [1 - min(agreement([a[rest] for a in original], [b[rest] for b in given])) for rest in parts]
    counts = all(array.dtype.kind != "f" for array in original)
    drop = drop_of(1 - checked.agreement, without, checked.samples, counts and checked.error > FLOAT32_ERROR)
    return _bounded(checked, drop, f"its answers agree with the original's to {checked.agreement:.4f}, but", budget)


def _bounded(checked: CheckResult, drop: Drop, seen: str, budget: AccuracyBudget) -> CheckResult:
    bound = drop.bound()
    if bound <= budget.max_drop + 1e-12:
        return replace(checked, bound=bound)
    needed = drop.samples_to_show(budget.max_drop)
    would = f"about {needed:,} samples would decide" if needed else "more samples are needed to decide"
    most = f"up to {bound:.2g} worse" if math.isfinite(bound) else "any drop"
    few = f"{drop.samples:,} samples are too few: {most} is possible (95 %), {budget.max_drop:g} is allowed"
    return replace(checked, problem=f"{seen} {few}; {would}", bound=bound if math.isfinite(bound) else None)


def _wrong_form(original: Sequence[Array], given: Sequence[Array]) -> str:
    if len(original) != len(given):
        return f"it has {len(given)} outputs; the original has {len(original)}"
    shapes = [(one[: len(other)].shape, other.shape) for one, other in zip(original, given, strict=True)]
    if all(one == other for one, other in shapes):
        return ""
    if sorted(str(one[1:]) for one, _ in shapes) == sorted(str(other[1:]) for _, other in shapes):
        return "its outputs are in another order than the original's"
    one, other = next((one, other) for one, other in shapes if one != other)
    return f"an output has the shape {other}; the original's is {one}"


def _finite_where_original_is(original: Sequence[Array], given: Sequence[Array]) -> bool:
    pairs = zip(original, given, strict=True)
    return all(
        np.isfinite(other[np.isfinite(one[: len(other)])]).all() for one, other in pairs if other.dtype.kind == "f"
    )


def _wrong_order(original: Sequence[Array], given: Sequence[Array], agreed: float) -> str:
    if not 2 <= len(given) <= 5:
        return ""
    for order in itertools.permutations(range(len(given))):
        reordered = [given[i] for i in order]
        fits = all(one.shape[1:] == other.shape[1:] for one, other in zip(original, reordered, strict=True))
        if fits and list(order) != sorted(order) and min(agreement(original, reordered)) > max(0.9, agreed + 0.1):
            return "its outputs are in another order than the original's"
    return ""


def _saturation(original: Sequence[Array], given: Sequence[Array]) -> str:
    for one, other in zip(original, given, strict=True):
        if other.dtype.kind != "f" or not other.size:
            continue
        for end in (other.max(), other.min()):
            share = float(np.mean(other == end))
            if share > SATURATED_SHARE and share > 2 * float(np.mean(one[: len(other)] == end)) and end != 0:
                return f"it saturates: {share:.0%} of its answers are at one end of their range"
    return ""
