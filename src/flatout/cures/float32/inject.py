"""`float32` in a running program."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from flatout.cures._dtype_policy import replace_everywhere
from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import package_of, patch, resolve


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "floatx", "layer-init")
    _switch(injection, "dtype-policy")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-floatx", "legacy-layer-init")
    _switch(injection, "legacy-dtype-policy")


def _install(injection: Injection, switch_key: str, layer_key: str) -> None:
    _switch(injection, switch_key)

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if _is_double(kwargs.get("dtype")):
                kwargs["dtype"] = "float32"
                injection.changed(f"float32 instead of float64{caller_location()}")
            original(self, *args, **kwargs)

        __init__.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]  # Keras asks for it
        return __init__

    patch(layer_key, wrap)


def _switch(injection: Injection, key: str) -> None:
    _, _, original = resolve(key)

    def switch(value: Any) -> Any:
        if _is_double(value):
            value = "float32"
            injection.changed(f"float32 instead of float64{caller_location()}")
        return original(value)

    switch.__doc__ = original.__doc__
    switch.__wrapped__ = original  # type: ignore[attr-defined]
    replace_everywhere(package_of(key), original, switch)


def _is_double(value: Any) -> bool:
    return "float64" in (value, getattr(value, "name", None))


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
