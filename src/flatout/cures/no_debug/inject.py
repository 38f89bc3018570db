"""`no-debug` in a running program: calls that switch debugging on do nothing."""

from __future__ import annotations

import contextlib
import functools
from types import ModuleType
from typing import Any

from flatout.cures import _frozen_here
from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.cures.no_debug import SWITCHES, TRACES
from flatout.observe.injection import Injection
from flatout.observe.private_names import Missing, patch


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    for name in SWITCHES:
        with contextlib.suppress(Missing):  # a switch that this TensorFlow lacks cannot be on
            patch(f"debug-{name}", functools.partial(_left_out, injection, name))


def _left_out(injection: Injection, name: str, original: Any) -> Any:
    def switch(*args: Any, **kwargs: Any) -> Any:
        if any(value is False for value in (*args, *kwargs.values())):
            return original(*args, **kwargs)  # the program switches it off itself
        why = _frozen_here.traced() if name in TRACES else None
        if why is not None:
            injection.note(f"tf.{name} stays on: {why}")
            return original(*args, **kwargs)
        injection.changed(f"tf.{name} left out{caller_location()}")
        return _Writer() if name.endswith("enable_dump_debug_info") else None

    return switch


class _Writer:
    """Replaces the writer of debug events, and writes nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


HOOKS = Hooks(tensorflow=on_tensorflow)
