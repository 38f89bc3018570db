"""Calls of Keras' methods that are served as a single batch: the data as Keras makes it, and who is left alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from flatout.cures._batch_graphs import is_of_keras
from flatout.observe.injection import Injection

PROGRESS = "its progress bars are no longer printed"


class Excluded:
    """Models whose calls go through Keras' own method for good, after the call for a single batch has failed."""

    def __init__(self, injection: Injection, method: str) -> None:
        self.injection = injection
        self.method = method
        self._models: dict[int, Any] = {}
        """Held, so that no other model gets the identity of one of them."""

    def __contains__(self, model: object) -> bool:
        return id(model) in self._models

    def add(self, model: Any, error: Exception) -> None:
        self._models[id(model)] = model
        said = (str(error).strip().splitlines() or [""])[0][:160]
        self.injection.note(f"{self.method} of {model.name} runs Keras' own method: {type(error).__name__}: {said}")


def as_floatx(value: Any) -> Any:
    """As `fit` and `predict` do with what they are given: arrays of other floats become those of the model."""
    import numpy as np

    if isinstance(value, (list, tuple)):
        return tuple(map(as_floatx, value))
    if isinstance(value, dict):
        return {name: as_floatx(leaf) for name, leaf in value.items()}
    floatx = sys.modules["keras"].config.floatx() if "keras" in sys.modules else "float32"
    if isinstance(value, np.ndarray):
        return value.astype(floatx) if value.dtype.kind == "f" and value.dtype != floatx else value
    if hasattr(value, "_numpy") and value.dtype.is_floating and value.dtype.name != floatx:
        import tensorflow as tf

        return tf.cast(value, floatx)
    return value


def without_callbacks(keras: ModuleType, model: Any) -> Any:
    """A callback list without callbacks: it tells the observer of each batch, as that of a whole call does."""
    callbacks = keras.callbacks.CallbackList.__new__(keras.callbacks.CallbackList)
    callbacks.__dict__.update(
        callbacks=[], params={}, _model=model, _async_train=False, _async_test=False, _async_predict=False
    )
    return callbacks


def has_state(model: Any) -> bool:
    """Whether layers keep a state from batch to batch: the order of rows within a batch matters to them."""
    return any(getattr(layer, "stateful", False) is True for layer in model._flatten_layers())


def logs_of_epoch(model: Any, step: str, logs: Any) -> Any:
    """What Keras takes for them: a step of the program's own may return other values by the names of the model's
    metrics, and then those of the metrics count."""
    chosen = getattr(model, "_get_metrics_result_or_logs", None)
    return logs if chosen is None or is_of_keras(getattr(type(model), step)) else chosen(logs)


def plain_logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    """The logs of a step as Python numbers, nested ones side by side: what callbacks and callers get to see."""
    found: dict[str, Any] = {}
    for name, value in sorted(logs.items()):
        if isinstance(value, dict):
            found.update(plain_logs(value))
            continue
        try:
            found[name] = float(value)
        except (TypeError, ValueError):
            found[name] = value
    return found
