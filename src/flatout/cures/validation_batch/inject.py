"""`validation-batch` in a running program: `fit` is given a larger `validation_batch_size`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._batch_size import KERAS_DEFAULT
from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.cures.validation_batch import TIMES
from flatout.observe.injection import Injection


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-fit")


def _install(injection: Injection, key: str) -> None:
    def in_fit(model: Any, arguments: Arguments) -> None:
        if not _validates_arrays(arguments):
            return
        why = _why_not(model, arguments)
        if why:
            injection.note(f"validation stays as it is: {why}")
            return
        trained = int(arguments.get("batch_size") or KERAS_DEFAULT)
        given = int(arguments.get("validation_batch_size") or trained)
        if given < TIMES * trained:
            arguments["validation_batch_size"] = TIMES * trained
            injection.changed(f"fit validates in batches of {TIMES * trained}, not of {given}{caller_location()}")

    change_arguments(key, in_fit)


def _validates_arrays(arguments: Arguments) -> bool:
    """Data that Keras cuts into batches; a dataset, a generator or a PyDataset has them already."""
    data = arguments.get("validation_data")
    if data is None:
        return bool(arguments.get("validation_split"))
    return isinstance(data, (tuple, list)) and all(hasattr(one, "shape") for one in data if one is not None)


def _why_not(model: Any, arguments: Arguments) -> str:
    import tensorflow as tf

    if arguments.get("validation_steps") is not None:
        return "validation_steps counts its batches"
    if tf.distribute.has_strategy():
        return "there is a distribution strategy"
    own = getattr(type(model), "test_step", None)
    if not str(getattr(own, "__module__", "")).startswith(("keras.", "tf_keras.")):
        return "the model has a test_step of its own"
    if any(getattr(layer, "stateful", False) is True for layer in getattr(model, "layers", ())):
        return "the model keeps a state from batch to batch"
    return ""


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
