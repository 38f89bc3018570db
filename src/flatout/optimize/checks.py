"""The checks that an artefact has to pass before it is timed. Nothing that fails one is recommended.

In this order, because an earlier failure explains a later one: outputs have the right number, order, shape and type,
and are numbers where the original's are; the weights are there; it is quantized and computes as its route states; its
answers to samples that no converter has seen agree with the original's, and satisfy the user's metric.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement, difference, head, is_float, relative_error, unlike
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
"""Samples from which on the agreement of answers that are the same up to rounding has an interval."""
FEWEST_GROUPS = 2
"""Of samples, for an interval."""
WHOLE = 0.01
"""A share of samples times their number is a whole number, to this: a metric that counts samples."""
PERCENT = 100.0
SMALLEST_DROP, LARGEST_DROP = 0.01, 0.1
"""What is allowed of an agreement where --max-drop is in the unit of a metric."""
FEW_SAMPLES = 5
"""The agreement on a few samples may be this many times as far off as on all: they vary less."""
SAME_WAY = 1e-3
"""Largest relative difference between two numbers of samples at once, where nothing depends on their number."""
SATURATED_SHARE = 0.2
"""Share of answers at one end of their range from which on they count as saturated."""


@dataclass(frozen=True)
class AccuracyBudget:
    """How much worse than the original an artefact may be, and by which metric."""

    max_drop: float = 0.01
    metric: str | None = None
    """None: agreement with the original's answers, which has to be at least 1 − max_drop."""
    lower_is_better: bool = False
    first_output_only: bool = False
    """Whether the metric looks at the first output alone: the others are held to the original's answers."""

    def drop(self, value: float, original: float) -> float:
        return value - original if self.lower_is_better else original - value

    @property
    def of_agreement(self) -> float:
        """What the agreement may lack where it is not what --max-drop is about."""
        return self.max_drop if self.metric is None else min(max(self.max_drop, SMALLEST_DROP), LARGEST_DROP)


@dataclass(frozen=True)
class CheckResult:
    problem: str = ""
    """Empty if it passed."""
    agreement: float | None = None
    metric: float | None = None
    drop: float | None = None
    samples: int = 0
    error: float = 0.0
    """Relative, of the answers."""
    discrete: bool = False
    """All outputs are whole numbers or strings: that they are equal does not show that they come from the same."""
    bound: float | None = None
    """The drop (of the agreement, without a metric) is at most this, with 95 %; None where that was not asked."""
    unshown: bool = False
    """Whether the problem is that the samples are too few to show that the drop is within what is allowed."""

    @property
    def same(self) -> bool:
        """Whether the answers are the original's, up to rounding of float32."""
        return self.error <= FLOAT32_ERROR and not self.discrete


def check_contents(route: Route, contents: Contents, parameters: int, *, states_precision: bool = True) -> str:
    """What is wrong with the weights and the precision in the files; empty if nothing is."""
    if contents.weights < MIN_SHARE_OF_WEIGHTS * parameters:
        return f"it contains {contents.weights:,} weights; the original has {parameters:,}"
    computes = contents.computes
    if not computes or not states_precision:
        return ""
    counts = ", ".join(f"{count} in {name}" for name, count in computes.items())
    if route.precision == "float32" and set(computes) - {"float32"}:
        return f"it is stated as float32, but its heavy nodes compute {counts}"
    expected = ("int8-weights", "int8") if route.precision == "int8-weights" else (route.precision,)
    if not any(computes.get(name) for name in expected):
        return f"it is stated as {route.precision}, but none of its heavy nodes is: {counts}"
    return ""


def check_count(original: Sequence[Array], given: Sequence[Array], asked: int, held_out: int) -> str:
    """What is missing of the answers to so many samples of those that were held out; empty if there is one to each."""
    rows = [len(other) for one, other in zip(original, given, strict=False) if len(one) == held_out]
    return next((f"it answers {count:,} of {asked:,} samples" for count in rows if count != asked), "")


def check_answers(
    route: Route,
    original: Sequence[Array],
    given: Sequence[Array],
    budget: AccuracyBudget,
    float16_error: float = 0.0,
    *,
    states_precision: bool = True,
) -> CheckResult:
    """Check the answers to held-out samples, apart from the user's metric.

    `states_precision`: False for files that were not made by the route, of which nothing is stated.
    """
    if problem := _wrong_form(original, given):
        return CheckResult(problem)
    agreed, count = min(agreement(original, given)), len(given[0])
    far_off = agreed < 1 - max(budget.of_agreement, SMALLEST_DROP)
    if far_off and (problem := _wrong_order(original, given, agreed) or _saturation(original, given)):
        return CheckResult(problem, agreed, samples=count)
    error, discrete = relative_error(original, given), not any(map(_is_continuous, original))
    problem = _wrong_precision(route, error, float16_error) if states_precision else ""
    problem = problem or _too_far_off(original, given, budget)
    return CheckResult(problem, agreed, samples=count, error=error, discrete=discrete)


def _too_far_off(original: Sequence[Array], given: Sequence[Array], budget: AccuracyBudget) -> str:
    """By the outputs that no metric looks at."""
    judged = 0 if budget.metric is None else 1 if budget.first_output_only else len(given)
    if judged >= len(given):
        return ""
    agreed, needed = min(agreement(original[judged:], given[judged:])), 1 - budget.of_agreement
    if agreed >= needed:
        return ""
    if judged == 0:
        return f"its answers agree with the original's to {agreed:.4f}; at least {needed:g} is required"
    return (
        f"its outputs beside the first agree with the original's to {agreed:.4f}; {budget.metric} does not look at "
        f"them, so at least {needed:g} is required"
    )


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
    pairs = list(zip(values.get("without", ()), values.get("original_without", ()), strict=True))
    defined = [(float(mine), float(its)) for mine, its in pairs if math.isfinite(its)]
    without = [budget.drop(mine, its) if math.isfinite(mine) else math.inf for mine, its in defined]
    if checked.same and len(without) < FEWEST_GROUPS:
        return replace(checked, bound=checked.drop)
    scale = 0.0 if checked.same else _scale(checked, values, budget, moved=any(without))
    drop = drop_of(checked.drop, without, checked.samples, counts=scale > 0, scale=scale or 1.0)
    seen = f"{budget.metric} is {checked.metric:.4g}, the original's {float(values['original']):.4g}"
    return _bounded(checked, drop, f"{seen}, but", budget)


def _scale(checked: CheckResult, values: Mapping[str, Any], budget: AccuracyBudget, moved: bool) -> float:
    """What a metric is when all samples count, where each is right or wrong and moves it by 1 / n of that: 1 or 100.

    0 for a metric to which each sample adds its own amount, such as a squared error. Shares of samples are known by
    being whole numbers of them, in either direction: an error rate is one as well. One in which more is better counts
    as a share in any case (AUC, F1), and so does one that no group of samples has moved although answers differ.
    """
    ends = [float(values[name]) for name in ("metric", "original")]
    if not all(0 <= end <= PERCENT for end in ends):
        return 0.0
    scale = 1.0 if max(ends) <= 1 else PERCENT
    counts = [end / scale * checked.samples for end in ends]
    if all(abs(count - round(count)) <= WHOLE for count in counts) or not (moved or checked.drop):
        return scale
    return scale if scale == 1.0 and not budget.lower_is_better else 0.0


def check_agreement_bound(
    checked: CheckResult, original: Sequence[Array], given: Sequence[Array], budget: AccuracyBudget
) -> CheckResult:
    """The same for the agreement with the original's answers, of outputs that no metric looks at."""
    if checked.problem or checked.agreement is None:
        return checked
    agreed = min(agreement(original, given))
    if checked.same and checked.samples < FEWEST_FOR_BOUND:
        return replace(checked, bound=1 - agreed)
    groups = min(GROUPS, checked.samples // 2)
    parts = [np.arange(checked.samples) % groups != group for group in range(groups)]
    original = [array[: checked.samples] for array in original]
    without = [1 - min(agreement([a[rest] for a in original], [b[rest] for b in given])) for rest in parts]
    drop = drop_of(1 - agreed, without, checked.samples, counts=checked.discrete)
    allowed = replace(budget, max_drop=budget.of_agreement)
    return _bounded(checked, drop, f"its answers agree with the original's to {agreed:.4f}, but", allowed)


def _bounded(checked: CheckResult, drop: Drop, seen: str, budget: AccuracyBudget) -> CheckResult:
    bound = drop.bound()
    if bound <= budget.max_drop + 1e-12:
        return replace(checked, bound=bound)
    needed = drop.samples_to_show(budget.max_drop)
    would = f"about {needed:,} samples would decide" if needed else "more samples are needed to decide"
    most = f"up to {bound:.2g} worse" if math.isfinite(bound) else "any drop"
    few = f"{drop.samples:,} samples are too few: {most} is possible (95 %), {budget.max_drop:g} is allowed"
    finite = bound if math.isfinite(bound) else None
    return replace(checked, problem=f"{seen} {few}; {would}", bound=finite, unshown=True)


def check_few(
    route: Route, original: Sequence[Array], own: Sequence[Array], given: Sequence[Array], budget: AccuracyBudget
) -> str:
    """What is wrong with answers to a few samples, given at once in another number than was checked; empty if nothing.

    `own`: the artefact's answers to the same samples, which were checked.
    """
    if problem := unlike(original, given):
        return problem
    if not difference(own, given, SAME_WAY):
        return ""
    strict = route.precision == "float32" and min(agreement(original, own)) > 1 - SMALLEST_DROP
    allowed = SMALLEST_DROP if strict else FEW_SAMPLES * min(max(budget.max_drop, SMALLEST_DROP), LARGEST_DROP)
    agreed = min(agreement(original, given))
    return "" if agreed >= 1 - allowed else f"its answers to {len(given[0])} samples at once agree to {agreed:.3f}"


def _is_continuous(array: Array) -> bool:
    """Whether it holds anything but whole numbers and strings."""
    if not is_float(array):
        return False
    finite = array[np.isfinite(array)]
    return bool(np.any(finite != np.round(finite)))


def _wrong_form(original: Sequence[Array], given: Sequence[Array]) -> str:
    if len(original) != len(given):
        return unlike(original, given)
    heads = [head(one, other) for one, other in zip(original, given, strict=True)]
    if any(one.shape != other.shape for one, other in zip(heads, given, strict=True)):
        before, now = (sorted(str(array.shape[1:]) for array in arrays) for arrays in (original, given))
        if before == now and all(len(array) <= len(original[0]) for array in given):
            return "its outputs are in another order than the original's"
        return unlike(heads, given)
    rows = [len(other) for one, other in zip(original, given, strict=True) if len(one) == len(original[0])]
    if len(set(rows)) > 1:
        return f"its outputs answer different numbers of samples: {', '.join(map(str, rows))}"
    if not _finite_where_original_is(original, given):
        return "it answers NaN or infinity where the original does not"
    return unlike(heads, given)


def _finite_where_original_is(original: Sequence[Array], given: Sequence[Array]) -> bool:
    pairs = [(head(one, other), other) for one, other in zip(original, given, strict=True)]
    return all(np.isfinite(other[np.isfinite(one)]).all() for one, other in pairs if is_float(one) and is_float(other))


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
