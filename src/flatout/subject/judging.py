"""The user's metric: a Keras metric by name, or a function of labels and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import InvalidOption
from flatout.subject.original import named
from flatout.subject.subject import Array

Measure = Callable[[Sequence[Array], Sequence[Array]], float]


class Judge:
    """Called with a file of answers to the held-out samples, the first of which it may be only."""

    def __init__(self, measure: Measure, labels: Sequence[Array]) -> None:
        self.measure = measure
        self.labels = labels
        self.original: Sequence[Array] = ()
        """The original's answers to all of them."""
        self._values: dict[int, float] = {}

    def __call__(self, answers: Path) -> dict[str, float]:
        """Of these answers, and of the original's to the same samples."""
        with np.load(answers, allow_pickle=False) as stored:
            outputs = [stored[f"out{i}"] for i in range(len(stored.files))]
        count = len(outputs[0])
        if count not in self._values:
            self._values[count] = self.of([output[:count] for output in self.original])
        return {"metric": self.of(outputs), "original": self._values[count]}

    def of(self, outputs: Sequence[Array]) -> float:
        count = len(outputs[0])
        value = float(self.measure([labels[:count] for labels in self.labels], outputs))
        return value if np.isfinite(value) else float("nan")


def measure_of(metric: str | Callable[..., Any]) -> Measure:
    if callable(metric):
        return _function(metric)
    if ":" in metric:
        return _function(named(metric))
    return _of_keras(metric)


def _function(function: Callable[..., Any]) -> Measure:
    def measure(labels: Sequence[Array], outputs: Sequence[Array]) -> float:
        value = function(
            labels[0] if len(labels) == 1 else list(labels), outputs[0] if len(outputs) == 1 else list(outputs)
        )
        return float(np.mean(np.asarray(value)))

    return measure


def _of_keras(name: str) -> Measure:
    """Of the first output, as `compile(metrics=[name])` would choose it."""
    import keras

    known = {"accuracy", "acc", "crossentropy", "ce"}
    if name not in known:
        try:
            if keras.metrics.get(name) is None:
                raise ValueError(name)
        except (ValueError, TypeError):
            raise InvalidOption(
                f"Keras has no metric named {name!r}. Names are those of `compile(metrics=[…])`, such as accuracy, "
                "auc, mean_absolute_error; a function of labels and answers is given as `module:function`."
            ) from None

    def measure(labels: Sequence[Array], outputs: Sequence[Array]) -> float:
        truth, answer = labels[0], outputs[0]
        metric = keras.metrics.get(_fitting(name, truth, answer) if name in known else name)
        if isinstance(metric, keras.metrics.Metric):
            for start in range(0, len(answer), 1024):
                metric.update_state(truth[start : start + 1024], answer[start : start + 1024])
            return float(np.asarray(metric.result()))
        return float(np.mean(np.asarray(metric(truth, answer))))

    return measure


def _fitting(name: str, truth: Array, answer: Array) -> str:
    tail = "accuracy" if name in ("accuracy", "acc") else "crossentropy"
    if answer.ndim < 2 or answer.shape[-1] == 1:
        return f"binary_{tail}"
    return f"categorical_{tail}" if truth.shape == answer.shape else f"sparse_categorical_{tail}"
