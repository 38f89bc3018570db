"""The user's metric: a Keras metric by name, or a function of labels and answers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.model.errors import InvalidOption
from flatout.subject.original import import_object
from flatout.subject.subject import Array

MetricFunction = Callable[[Sequence[Array], Sequence[Array]], float]
"""Takes labels and answers, one array for each output."""

MIXED, MIXED_SECONDS = 8, 5.0
"""How often answers are mixed up, and how long that may take."""

_LOWER_IS_BETTER = re.compile(
    r"error|loss|entropy|perplexity|mse|mae|mape|msle|divergence|hinge|poisson|log_?cosh|false|distance", re.I
)


def lower_is_better(metric: str | None) -> bool:
    """The usual direction of a metric, by its name."""
    return bool(metric and _LOWER_IS_BETTER.search(metric.rpartition(":")[2]))


class MetricEvaluator:
    """Evaluates the metric of a file of answers to the held-out samples, or to the first of them."""

    def __init__(self, function: MetricFunction, labels: Sequence[Array], first_output_only: bool = False) -> None:
        self.function = function
        self.labels = labels
        self.first_output_only = first_output_only
        """Whether the metric looks at no other output."""
        self.original: Sequence[Array] = ()
        """The original's answers to all held-out samples."""
        self._original_values: dict[int, float] = {}
        self._original_without: dict[tuple[int, int], list[float]] = {}

    def __call__(self, answers: Path, groups: int = 0) -> dict[str, Any]:
        """The metric of these answers, and of the original's answers to the same samples. With `groups`: also of all
        samples but those of a group, for each of so many."""
        with np.load(answers, allow_pickle=False) as stored:
            outputs = [stored[f"out{i}"] for i in range(len(stored.files))]
        count = len(outputs[0])
        if count not in self._original_values:
            self._original_values[count] = self.evaluate([output[:count] for output in self.original])
        found: dict[str, Any] = {"metric": self.evaluate(outputs), "original": self._original_values[count]}
        groups = min(groups, count // 2)
        if groups > 1:
            if (count, groups) not in self._original_without:
                original = [output[:count] for output in self.original]
                self._original_without[count, groups] = self._without(original, groups)
            found |= {"without": self._without(outputs, groups)}
            found |= {"original_without": self._original_without[count, groups]}
        return found

    def mixed_up(self) -> list[float]:
        """The metric of the original's answers, each given to another sample, some times: what a model is worth that
        has not seen its samples. Empty where the metric does not take them so, or takes long."""
        count, found, end = len(self.original[0]), list[float](), time.monotonic() + MIXED_SECONDS
        for shift in sorted({count * part // (MIXED + 1) for part in range(1, MIXED + 1)} - {0}):
            try:
                found.append(self.evaluate([np.roll(output, shift, axis=0) for output in self.original]))
            except Exception:  # a function of the user's own, and this is not what it is for
                return []
            if time.monotonic() > end:
                break
        return [value for value in found if np.isfinite(value)]

    def _without(self, outputs: Sequence[Array], groups: int) -> list[float]:
        kept = (np.arange(len(outputs[0])) % groups != group for group in range(groups))
        return [self.evaluate([output[rest] for output in outputs], rest) for rest in kept]

    def evaluate(self, outputs: Sequence[Array], of: NDArray[np.bool_] | None = None) -> float:
        """`of`: the samples that these answer; None: the first ones."""
        kept = slice(len(outputs[0])) if of is None else np.flatnonzero(of)
        value = float(self.function([labels[kept] for labels in self.labels], outputs))
        return value if np.isfinite(value) else float("nan")


def is_of_keras(metric: str | Callable[..., Any]) -> bool:
    """By its name: then it is that of the first output, and says nothing of the others."""
    return isinstance(metric, str) and ":" not in metric


def metric_function(metric: str | Callable[..., Any]) -> MetricFunction:
    if callable(metric):
        return _from_callable(metric)
    if ":" in metric:
        return _from_callable(import_object(metric))
    return _from_keras(metric)


def _from_callable(function: Callable[..., Any]) -> MetricFunction:
    def evaluate(labels: Sequence[Array], outputs: Sequence[Array]) -> float:
        value = function(
            labels[0] if len(labels) == 1 else list(labels), outputs[0] if len(outputs) == 1 else list(outputs)
        )
        return float(np.mean(np.asarray(value)))

    return evaluate


def _from_keras(name: str) -> MetricFunction:
    """A Keras metric of the first output, chosen as `compile(metrics=[name])` chooses it."""
    import keras

    short_names = {"accuracy", "acc", "crossentropy", "ce"}
    if name not in short_names:
        try:
            if keras.metrics.get(name) is None:
                raise ValueError(name)
        except (ValueError, TypeError):
            raise InvalidOption(
                f"Keras has no metric named {name!r}. Use a name that `compile(metrics=[…])` accepts, such as "
                "accuracy, auc or mean_absolute_error, or give a function of labels and answers as `module:function`."
            ) from None

    def evaluate(labels: Sequence[Array], outputs: Sequence[Array]) -> float:
        truth, answer = labels[0], outputs[0]
        metric = keras.metrics.get(_full_name(name, truth, answer) if name in short_names else name)
        if isinstance(metric, keras.metrics.Metric):
            for start in range(0, len(answer), 1024):
                metric.update_state(truth[start : start + 1024], answer[start : start + 1024])
            return float(np.asarray(metric.result()))
        return float(np.mean(np.asarray(metric(truth, answer))))

    return evaluate


def _full_name(name: str, truth: Array, answer: Array) -> str:
    """Keras' choice among binary, categorical and sparse categorical, by the shapes."""
    kind = "accuracy" if name in ("accuracy", "acc") else "crossentropy"
    if answer.ndim < 2 or answer.shape[-1] == 1:
        return f"binary_{kind}"
    return f"categorical_{kind}" if truth.shape == answer.shape else f"sparse_categorical_{kind}"
