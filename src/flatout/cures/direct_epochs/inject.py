"""`direct-epochs` in a running program."""

from __future__ import annotations

import functools
import inspect
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
from flatout.model.evidence.program import MANY_EPOCHS
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.single_batches import Signature, SingleBatch


def on_keras(injection: Injection, module: ModuleType) -> None:
    epochs = _Epochs(injection, module)

    def wrap(original: Any) -> Any:
        signature = Signature("fit", original)

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            asked = epochs.asked(signature, self, args, kwargs)
            if asked is None:
                return original(self, *args, **kwargs)
            given = inspect.signature(original).bind(self, *args, **kwargs)
            given.arguments["epochs"] = 1
            history = original(*given.args, **given.kwargs)
            run = epochs.prepared(self, asked)
            if run is None:
                given.arguments.update(epochs=asked.epochs, initial_epoch=1)
                return _put_together(history, original(*given.args, **given.kwargs))
            injection.changed(f"epochs of fit on one batch go straight to the model{caller_location()}")
            if asked.shown:
                injection.note(PROGRESS)
            epochs.run(self, asked, history, run)
            return history

        return call

    patch("fit", wrap)


class _Epochs:
    def __init__(self, injection: Injection, keras: ModuleType) -> None:
        self.keras = keras
        self.graphs = BatchGraphs("train_function")
        self.excluded = Excluded(injection, "fit")

    def asked(self, signature: Signature, model: Any, args: Any, kwargs: Any) -> SingleBatch | None:
        try:
            asked = signature.single_batch(model, args, kwargs) if model not in self.excluded else None
        except Exception as error:  # nothing has been trained yet
            self.excluded.add(model, error)
            return None
        return asked if asked is not None and asked.epochs >= MANY_EPOCHS else None

    def prepared(self, model: Any, asked: SingleBatch) -> Callable[[], Any] | None:
        """What runs an epoch, after the first one has; None where Keras has to go on itself."""
        try:
            if has_state(model) or not self.graphs.is_ready(model):
                return None
            values = (asked.x, asked.y) if asked.sample_weight is None else (asked.x, asked.y, asked.sample_weight)
            return self.graphs.traced(model, tuple(_tensors(as_floatx(value)) for value in values))
        except Exception as error:  # only the first epoch has been trained
            self.excluded.add(model, error)
            return None

    def run(self, model: Any, asked: SingleBatch, history: Any, run: Callable[[], Any]) -> None:
        callbacks, found = without_callbacks(self.keras, model), []
        for _ in range(1, asked.epochs):
            callbacks.on_train_batch_begin(0)
            logs = run()
            callbacks.on_train_batch_end(0, logs)
            found.append(logs_of_epoch(model, "train_step", logs))
        for epoch, logs in enumerate(found, 1):
            history.on_epoch_end(epoch, plain_logs(logs))
        history.set_params({**(history.params or {}), "epochs": asked.epochs})
        if isinstance(model.optimizer, self.keras.optimizers.Optimizer):
            model.optimizer.finalize_variable_values(model.trainable_weights)


def _tensors(value: Any) -> Any:
    """Copied to the device once, not in each epoch."""
    import tensorflow as tf

    return tf.nest.map_structure(tf.convert_to_tensor, value)


def _put_together(first: Any, rest: Any) -> Any:
    """The history of all epochs, in that of the later call: the model has that one."""
    rest.epoch[:0] = first.epoch
    for name, values in first.history.items():
        rest.history[name] = [*values, *rest.history.get(name, ())]
    return rest


HOOKS = Hooks(keras=on_keras)
