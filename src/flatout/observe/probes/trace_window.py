"""Gives the trace window TensorFlow's profiler, and gives way when the program uses the profiler itself."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import resolve


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    window = observer.window
    if not window.enabled:
        return
    holder, name, session_class = resolve("profiler-session")
    _, _, mark = resolve("trace-me")

    def make_session_for_program(*args: Any, **kwargs: Any) -> Any:
        """Only one profiler session can exist: the program's own comes first."""
        window.close("the program started the profiler itself")
        window.wants_ticks = False
        window.make_session = None
        observer.note("the program uses TensorFlow's profiler itself; flatout gave way and took no further trace")
        return session_class(*args, **kwargs)

    setattr(holder, name, make_session_for_program)
    window.make_session = session_class
    window.make_mark = mark
