"""Input classes that tf.data has replaced: ImageDataGenerator."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, Wrap, patch
from flatout.source import users_code


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    with contextlib.suppress(Missing):
        patch("image-generator", _wrap(observer, "ImageDataGenerator"))


def on_keras(observer: Observer, module: ModuleType) -> None:
    with contextlib.suppress(Missing):
        patch("keras-image-generator", _wrap(observer, "ImageDataGenerator"))


def _wrap(observer: Observer, name: str) -> Wrap:
    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            observer.recorder.fact("legacy-input", name=name, where=users_code.here())
            original(self, *args, **kwargs)

        return __init__

    return wrap


PROBE = Probe("legacy_input", keras=on_keras, tf_keras=on_tf_keras)
