"""Debugging and configuration switches that the program turns on, and the line that does it."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import replace
from flatout.observe.probe import Probe
from flatout.source import users_code

SWITCHES = (
    ("config", "run_functions_eagerly"),
    ("config.experimental_run_functions_eagerly", ""),
    ("debugging", "enable_check_numerics"),
    ("debugging.experimental", "enable_dump_debug_info"),
    ("debugging", "set_log_device_placement"),
    ("debugging", "enable_traceback_filtering"),
    ("data.experimental", "enable_debug_mode"),
    ("config.optimizer", "set_experimental_options"),
    ("config.optimizer", "set_jit"),
    ("config.threading", "set_intra_op_parallelism_threads"),
    ("config.threading", "set_inter_op_parallelism_threads"),
    ("config.experimental", "enable_op_determinism"),
    ("config.experimental", "set_memory_growth"),
    ("config", "set_visible_devices"),
    ("config", "set_soft_device_placement"),
)
"""Public functions, wrapped where the program finds them: `tf.<holder>.<name>`."""

KERAS_SWITCHES = (
    ("config", "set_floatx"),
    ("config", "set_dtype_policy"),
    ("mixed_precision", "set_global_policy"),
    ("config", "set_image_data_format"),
)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    for path, name in SWITCHES:
        holder: Any = module
        for part in path.split("."):
            holder = getattr(holder, part, None)
        if holder is None or not name or not hasattr(holder, name):
            continue
        with contextlib.suppress(Exception):
            replace(holder, name, _wrap(observer, f"tf.{path}.{name}", getattr(holder, name)))


def on_keras(observer: Observer, module: ModuleType) -> None:
    for path, name in KERAS_SWITCHES:
        original = getattr(getattr(module, path, None), name, None)
        if original is None:
            continue
        wrapper = _wrap(observer, f"keras.{path}.{name}", original)
        # The same function stands in many modules (`tf.keras` has a tree of its own): replace it in all of them.
        for holder in list(sys.modules.values()):
            if getattr(holder, "__name__", "").startswith("keras"):
                for alias, value in list(vars(holder).items()):
                    if value is original:
                        replace(holder, alias, wrapper)


def _wrap(observer: Observer, label: str, original: Any) -> Any:
    def switch(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            given = [str(value)[:80] for value in args] + [f"{key}={str(v)[:80]}" for key, v in kwargs.items()]
            observer.recorder.fact("switch", name=label, given=given, where=users_code.here())
        return original(*args, **kwargs)

    switch.__name__ = getattr(original, "__name__", "switch")
    switch.__doc__ = original.__doc__
    switch.__module__ = getattr(original, "__module__", switch.__module__)
    switch.__wrapped__ = original  # type: ignore[attr-defined]
    return switch


PROBE = Probe("switches", tensorflow=on_tensorflow, keras=on_keras)
