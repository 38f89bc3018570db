"""`direct-fit` in a running program."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._one_batch import PROGRESS, Excluded, as_floatx, plain_logs
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.single_batches import Signature, SingleBatch


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit", _Fit(module))
    _install(injection, "evaluate", _Evaluate(module))


class _Short:
    """One method for a single batch. The first call of a model runs Keras' own method, which builds what this needs."""

    function = ""
    """The attribute of a model that holds the graph of the method."""

    def __init__(self, keras: ModuleType) -> None:
        self.keras = keras
        self._known: dict[int, tuple[Any, bool]] = {}

    def is_ready(self, model: Any) -> bool:
        made = getattr(model, self.function, None)
        if made is None or not model.built or model.run_eagerly:
            return False
        known = self._known.get(id(model))
        if known is None or known[0] is not made:
            # The order of rows within a batch matters to layers that keep a state from batch to batch.
            stateful = any(getattr(layer, "stateful", False) is True for layer in model._flatten_layers())
            known = self._known[id(model)] = (made, not stateful)
        return known[1]

    def batches(self, model: Any) -> Any:
        """A callback list without callbacks: it tells the observer of each batch, as that of a whole call does."""
        callbacks = self.keras.callbacks.CallbackList.__new__(self.keras.callbacks.CallbackList)
        callbacks.__dict__.update(
            callbacks=[], params={}, _model=model, _async_train=False, _async_test=False, _async_predict=False
        )
        return callbacks

    def call(self, model: Any, asked: SingleBatch) -> Any:
        raise NotImplementedError


def _data(asked: SingleBatch) -> tuple[Any, ...]:
    values = (asked.x, asked.y) if asked.sample_weight is None else (asked.x, asked.y, asked.sample_weight)
    return tuple(map(as_floatx, values))


class _Fit(_Short):
    function = "train_function"

    def call(self, model: Any, asked: SingleBatch) -> Any:
        history = self.keras.callbacks.History()
        history.set_model(model)
        history.set_params({"verbose": int(asked.shown), "epochs": asked.epochs, "steps": 1})
        history.on_train_begin()
        callbacks, data = self.batches(model), _data(asked)
        model.stop_training = False
        for epoch in range(asked.epochs):
            model.reset_metrics()
            callbacks.on_train_batch_begin(0)
            logs = model.train_function(iter([data]))
            callbacks.on_train_batch_end(0, logs)
            history.on_epoch_end(epoch, plain_logs(logs))
        if isinstance(model.optimizer, self.keras.optimizers.Optimizer):
            model.optimizer.finalize_variable_values(model.trainable_weights)
        return history


class _Evaluate(_Short):
    function = "test_function"

    def call(self, model: Any, asked: SingleBatch) -> Any:
        callbacks = self.batches(model)
        model.stop_evaluating = False
        model.reset_metrics()
        callbacks.on_test_batch_begin(0)
        logs = model.test_function(iter([_data(asked)]))
        callbacks.on_test_batch_end(0, logs)
        numbers = plain_logs(logs)
        return numbers if asked.return_dict else model._flatten_metrics_in_order(numbers)


def _install(injection: Injection, method: str, short: _Short) -> None:
    excluded = Excluded(injection, method)

    def wrap(original: Any) -> Any:
        signature = Signature(method, original)

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            fits = self not in excluded and short.is_ready(self)
            asked = signature.single_batch(self, args, kwargs) if fits else None
            if asked is None:
                return original(self, *args, **kwargs)
            before = _updates(self)
            try:
                result = short.call(self, asked)
            except Exception as error:
                if _updates(self) != before:
                    raise  # something was trained: the same again would train it twice
                excluded.add(self, error)
                return original(self, *args, **kwargs)
            injection.changed(f"{method} on one batch goes straight to the model{caller_location()}")
            if asked.shown:
                injection.note(PROGRESS)
            return result

        return call

    patch(method, wrap)


def _updates(model: Any) -> int:
    optimizer = getattr(model, "optimizer", None)
    return int(optimizer.iterations.numpy()) if optimizer is not None and optimizer.built else 0


HOOKS = Hooks(keras=on_keras)
