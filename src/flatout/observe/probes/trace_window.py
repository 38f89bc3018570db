"""Gives the trace window TensorFlow's profiler, and gives way when the program uses the profiler itself."""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, replace, resolve
from flatout.observe.window import Window


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

    replace(holder, name, make_session_for_program)
    window.make_session = session_class
    window.make_mark = mark
    for leave_out in (_leave_conversions_out, _leave_thread_pools_out):
        try:
            leave_out(window)
        except Missing as name:
            observer.note(f"tracing costs short steps some percent more than it could: {name}")


def _leave_conversions_out(window: Window) -> None:
    """While the window is open, TensorFlow marks every conversion of an argument, in Python: hundreds in an eager step.

    Nothing reads those marks, and they are a third of what tracing costs such a step. Named scopes (`Trace`: calls of
    functions, the program's own) stay.
    """
    module, switch, enabled = resolve("trace-enabled")
    scope, begin, begin_if_enabled = resolve("trace-scope")
    _, _, mark = resolve("trace-me")
    # A function in 2.21, a plain flag in 2.15 to 2.19. Both are read only while the window, and so the profiler, is on.
    is_function = callable(enabled)
    is_enabled: Any = enabled if is_function else lambda: True
    off: Any = (lambda: False) if is_function else False

    def begin_always(self: Any, name: str, **facts: Any) -> None:
        self._traceme = mark(name, **facts) if is_enabled() else None

    def leave_out() -> None:
        setattr(scope, begin, begin_always)
        setattr(module, switch, off)

    def restore() -> None:
        setattr(module, switch, enabled)
        setattr(scope, begin, begin_if_enabled)

    window.on_open.append(leave_out)
    window.on_close.append(restore)


def _leave_thread_pools_out(window: Window) -> None:
    """While the window is open, TensorFlow writes three events for each closure that a thread pool runs: when it was
    scheduled, started, ended. Nothing here reads them, and on steps of many small ops they are most of what tracing
    costs. They are switched off as TensorFlow itself does it when the profiler stops.
    """
    _, _, deactivate = resolve("thread-pool-tracing")
    _, _, collect = resolve("thread-pool-collector")
    collect.argtypes, collect.restype = [ctypes.c_uint, ctypes.c_void_p], None
    deactivate.restype = None

    def leave_out() -> None:
        deactivate()
        for category in (_SCHEDULED, _RUN):
            collect(category, None)

    window.on_open.append(leave_out)


_SCHEDULED, _RUN = 0, 1
"""`tsl::tracing::EventCategory`."""


PROBE = Probe("trace_window", tensorflow=on_tensorflow)
