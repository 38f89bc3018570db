"""What a thread is executing, looked up from another thread.

Before Python 3.12, `sys._current_frames` makes objects while it holds a lock of the interpreter. Where that starts the
garbage collector, and a `threading.local` is among the garbage, the same lock is asked for once more, and the process
stands still for ever (CPython issue 106883). So nothing is collected meanwhile.
"""

from __future__ import annotations

import gc
import sys
from operator import methodcaller
from types import FrameType

COLLECTS_INSIDE = sys.version_info < (3, 12)

_call = methodcaller("__call__")


def frame_of(thread: int) -> FrameType | None:
    """The innermost frame of a thread, by its identity."""
    if not COLLECTS_INSIDE or not gc.isenabled():
        return sys._current_frames().get(thread)
    # All three in one call into C: no other thread runs in between, and none sees the collector switched off.
    frames: dict[int, FrameType]
    _, frames, _ = map(_call, (gc.disable, sys._current_frames, gc.enable))
    return frames.get(thread)
