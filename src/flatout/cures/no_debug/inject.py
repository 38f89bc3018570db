"""`no-debug` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._compiling import place
from flatout.cures._spec import Hooks
from flatout.cures.no_debug import SWITCHES
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    for path, name in SWITCHES:
        holder: Any = module
        for part in path.split("."):
            holder = getattr(holder, part, None)
        original = getattr(holder, name, None)
        if original is not None:
            setattr(holder, name, _left_out(injection, f"tf.{path}.{name}", original))


def _left_out(injection: Injection, label: str, original: Any) -> Any:
    def switch(*args: Any, **kwargs: Any) -> Any:
        if any(value is False for value in (*args, *kwargs.values())):
            return original(*args, **kwargs)  # the program switches it off itself
        injection.changed(f"{label} left out{place()}")
        return _Writer() if name == "enable_dump_debug_info" else None

    name = label.rpartition(".")[2]
    switch.__name__ = name
    switch.__doc__ = original.__doc__
    switch.__module__ = getattr(original, "__module__", switch.__module__)
    switch.__wrapped__ = original  # type: ignore[attr-defined]
    return switch


class _Writer:
    """Stands for the writer of debug events; whatever it is asked to write, it does not."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


HOOKS = Hooks(tensorflow=on_tensorflow)
