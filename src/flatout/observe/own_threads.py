"""Threads of the observer's own, which are none of the program's.

They are no `threading.Thread`: a program may count its threads, or wait for all of them. From Python 3.12 on a fork
warns in a process that has several threads of any kind. Where all others are the observer's, it is not to warn: no
lock of the program is held by one of them.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

_TASKS = "/proc/self/task"
_FILTER: Any = (
    "ignore",
    re.compile(r"This process \(pid=\d+\) is multi-threaded, use of fork(pty)?\(\) may lead to deadlocks in the child"),
    DeprecationWarning,
    None,
    0,
)

_ours: set[int] = set()
_watched = False


def start(run: Callable[[], None]) -> None:
    global _watched
    if not _watched and sys.version_info >= (3, 12):
        _watched = True
        os.register_at_fork(before=_before_fork, after_in_child=_ours.clear)
    _thread.start_new_thread(_run, (run,))


def _run(run: Callable[[], None]) -> None:
    own = threading.get_native_id()
    _ours.add(own)
    try:
        run()
    finally:
        _ours.discard(own)


def _before_fork() -> None:
    """The filter is set without `warnings.filterwarnings`, after which all warnings of the program that were shown
    once would be shown again. It stays until a fork with other threads: Python warns when the fork is over."""
    filters: Any = warnings.filters
    with contextlib.suppress(Exception):
        if _FILTER in filters:
            filters.remove(_FILTER)
        if _ours and _others() <= 0:
            filters.insert(0, _FILTER)


def _others() -> int:
    """Threads besides the one that forks and the observer's."""
    tasks = {int(name) for name in os.listdir(_TASKS)}
    return len(tasks - _ours - {threading.get_native_id()})
