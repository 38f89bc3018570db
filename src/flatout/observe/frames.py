"""What a thread is executing, looked up from another thread.

Before Python 3.12 the garbage collector may start wherever an object is made, and what it calls may let other threads
run. Two things must not meet that:

- `sys._current_frames` makes objects while it holds a lock of the interpreter. Where a `threading.local` is among the
  garbage, the same lock is asked for once more, and the process stands still for ever (CPython issue 106883).
- `frame.f_back` makes the object of a frame that is still running. Where its thread goes on meanwhile, the frame is
  gone once the object is made, and the process crashes.

So a look is one call into C, from the first frame to the last: no other thread runs in between, and the collector is
off. Whether it was on is asked in the same call: the program may switch it off at any time. No frame is kept either,
only what it was executing: the program's variables live as long as they do without us.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import repeat, takewhile
from operator import attrgetter, methodcaller, truth
from types import CodeType, FrameType
from typing import Any

COLLECTS_ANYWHERE = sys.version_info < (3, 12)
MOST_LINES = 100_000

Look = tuple[CodeType, int, dict[str, Any]]
"""The code of a frame, its last instruction, and its module's names."""

_call = methodcaller("__call__")
_read = attrgetter("f_code", "f_lasti", "f_globals")
_lines: dict[tuple[int, int], tuple[CodeType, int]] = {}
"""With the code itself, so that no other gets its identity."""


def stack_of(thread: int, deepest: int) -> list[Look]:
    """What a thread is executing, from the innermost function outwards; empty where the thread has ended."""
    frames: list[FrameType] = []
    found: list[Look] = []
    innermost = filter(None, map(methodcaller("get", thread), map(_call, (sys._current_frames,))))
    # The list grows while it is read: each frame leads to the one that called it.
    callers: Iterable[Any] = takewhile(truth, map(getattr, frames, repeat("f_back", deepest - 1), repeat(None)))
    look = (
        partial(frames.extend, innermost),
        partial(frames.extend, callers),
        partial(found.extend, map(_read, frames)),
        frames.clear,
    )
    if not COLLECTS_ANYWHERE:
        _, _, _, _ = map(_call, look)
        return found
    collected: list[bool] = []
    ask = partial(collected.extend, map(_call, (gc.isenabled,)))
    leave: partial[deque[None]] = partial(deque, map(_call, map((gc.disable, gc.enable).__getitem__, collected)), 0)
    try:
        _, _, _, _, _, _, _ = map(_call, (ask, gc.disable, *look, leave))
    except BaseException:
        if True in collected:
            gc.enable()
        raise
    return found


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction, as `f_lineno` has it."""
    key = (id(code), instruction)
    known = _lines.get(key)
    if known is None:
        lines = (line for first, end, line in code.co_lines() if line and first <= max(instruction, 0) < end)
        known = (code, next(lines, code.co_firstlineno))
        if len(_lines) < MOST_LINES:
            _lines[key] = known
    return known[1]
