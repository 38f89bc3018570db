"""`fewer-summaries` in a running program: a TensorBoard callback is changed when it is given its model."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.cures.fewer_summaries import BATCHES, HISTOGRAMS
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "tensorboard-set-model")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-tensorboard-set-model")


def _install(injection: Injection, key: str) -> None:
    def wrap(original: Any) -> Any:
        def set_model(self: Any, model: Any) -> Any:
            if type(self).__name__ != "TensorBoard" or not type(self).__module__.startswith(("keras.", "tf_keras.")):
                injection.note(f"{type(self).__name__} is a class of the program's own")
            else:
                _less_often(injection, self)
            return original(self, model)

        return set_model

    patch(key, wrap)


def _less_often(injection: Injection, callback: Any) -> None:
    told = []
    if _is_between(callback.histogram_freq, HISTOGRAMS):
        callback.histogram_freq = HISTOGRAMS
        told.append(f"histogram_freq={HISTOGRAMS}")
    if callback.write_images and callback.histogram_freq:
        callback.write_images = False
        told.append("write_images=False")
    if _is_between(callback.update_freq, BATCHES):
        callback.update_freq = BATCHES
        told.append(f"update_freq={BATCHES}")
    if told:
        injection.changed(f"TensorBoard has {', '.join(told)}{caller_location()}")
    else:
        injection.note("TensorBoard writes seldom already")


def _is_between(given: Any, least: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 < given < least


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
