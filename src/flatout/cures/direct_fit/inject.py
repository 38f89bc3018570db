"""`direct-fit` in a running program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flatout.cures._batch_graphs import BatchGraphs
from flatout.cures._keras_arguments import caller_location
from flatout.cures._one_batch import (
    PROGRESS,
    Excluded,
    as_floatx,
    has_state,
    logs_of_epoch,
    plain_logs,
    without_callbacks,
)
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.single_batches import Signature, SingleBatch


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit", _Fit(module, "train_function"))
    _install(injection, "evaluate", _Evaluate(module, "test_function"))


class _Short:
    """One method for a single batch. The first call of a model runs Keras' own method, which builds what this needs."""

    def __init__(self, keras: ModuleType, function: str) -> None:
        self.keras = keras
        self.graphs = BatchGraphs(function)

    def is_ready(self, model: Any) -> bool:
        return self.graphs.is_ready(model) and not has_state(model)

    def prepared(self, model: Any, asked: SingleBatch) -> Callable[[], Any]:
        """What makes the call. Nothing has been trained yet, and all that can fail for the lever's sake is done."""
        values = (asked.x, asked.y) if asked.sample_weight is None else (asked.x, asked.y, asked.sample_weight)
        data = tuple(map(as_floatx, values))
        if asked.batches == 1:
            runs = [self.graphs.traced(model, data)]
        else:
            starts = (number * asked.size for number in range(asked.batches))
            parts = (_rows(data, start, start + asked.size) for start in starts)
            runs = [self.graphs.traced(model, part, goes_on=number > 0) for number, part in enumerate(parts)]
        return functools.partial(self.call, model, asked, runs, without_callbacks(self.keras, model))

    def call(self, model: Any, asked: SingleBatch, runs: list[Callable[[], Any]], callbacks: Any) -> Any:
        raise NotImplementedError


def _rows(value: Any, start: int, end: int) -> Any:
    """Some rows of all arrays of a structure."""
    if isinstance(value, (list, tuple)):
        return tuple(_rows(part, start, end) for part in value)
    if isinstance(value, dict):
        return {name: _rows(part, start, end) for name, part in value.items()}
    return value[start:end]


class _Fit(_Short):
    def call(self, model: Any, asked: SingleBatch, runs: list[Callable[[], Any]], callbacks: Any) -> Any:
        history = self.keras.callbacks.History()
        history.set_model(model)
        history.set_params({"verbose": int(asked.shown), "epochs": asked.epochs, "steps": asked.batches})
        history.on_train_begin()
        model.stop_training = False
        for epoch in range(asked.epochs):
            logs: Any = {}
            for number, run in enumerate(runs):
                callbacks.on_train_batch_begin(number)
                logs = run()
                callbacks.on_train_batch_end(number, logs)
            history.on_epoch_end(epoch, plain_logs(logs_of_epoch(model, "train_step", logs)))
        if isinstance(model.optimizer, self.keras.optimizers.Optimizer):
            model.optimizer.finalize_variable_values(model.trainable_weights)
        return history


class _Evaluate(_Short):
    def call(self, model: Any, asked: SingleBatch, runs: list[Callable[[], Any]], callbacks: Any) -> Any:
        model.stop_evaluating = False
        callbacks.on_test_batch_begin(0)
        logs = runs[0]()
        callbacks.on_test_batch_end(0, logs)
        numbers = plain_logs(logs_of_epoch(model, "test_step", logs))
        return numbers if asked.return_dict else model._flatten_metrics_in_order(numbers)


def _install(injection: Injection, method: str, short: _Short) -> None:
    excluded = Excluded(injection, method)

    def wrap(original: Any) -> Any:
        signature = Signature(method, original)

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                fits = self not in excluded and short.is_ready(self)
                asked = signature.few_batches(self, args, kwargs) if fits else None
                run = short.prepared(self, asked) if asked is not None else None
            except Exception as error:  # nothing has been trained yet
                excluded.add(self, error)
                run = None
            if run is None or asked is None:
                return original(self, *args, **kwargs)
            result = run()  # an error in it is one of the model's own operations, as in Keras' own method
            what = "one batch" if asked.batches == 1 else "a few batches"
            injection.changed(f"{method} on {what} goes straight to the model{caller_location()}")
            if asked.shown:
                injection.note(PROGRESS)
            return result

        return call

    patch(method, wrap)


HOOKS = Hooks(keras=on_keras)
