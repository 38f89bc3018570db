"""For a run that only compares values: dropout and noise inside the model become the identity.

XLA draws other random numbers than TensorFlow does, and several steps in one call draw them in another order: the
program is right and its losses differ. Without the noise the rest must agree. Both sides of a comparison run like this.
Augmentation of the input stays as it is.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flatout.observe.observer import Probe
from flatout.observe.private_names import Missing, patch

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

NOISES = ("gaussian-noise", "gaussian-dropout", "alpha-dropout")


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    """All dropout of TensorFlow and both Keras ends in one function."""

    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        def _dropout(*args: Any, **keywords: Any) -> Any:
            return module.convert_to_tensor(signature.bind(*args, **keywords).arguments["x"])

        return _dropout

    _try(observer, "dropout", wrap)


def on_keras(observer: Observer, module: ModuleType) -> None:
    for name in NOISES:
        _try(observer, name, _without_noise)


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    for name in NOISES:
        _try(observer, f"legacy-{name}", _without_noise)


def _without_noise(original: Any) -> Any:
    def call(self: Any, inputs: Any, training: Any = None) -> Any:
        return inputs

    return call


def _try(observer: Observer, key: str, wrap: Any) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        observer.note(f"noise in the model stays: {missing}")


PROBE = Probe("without dropout", tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
