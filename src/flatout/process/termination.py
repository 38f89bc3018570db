"""SIGTERM: what a scheduler sends when a job's time is over, some seconds before it kills."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def as_interrupt() -> Iterator[None]:
    """The first SIGTERM ends the work as Ctrl-C does, with what was found so far; the next one ends the process."""
    ours = threading.current_thread() is threading.main_thread()  # Python handles signals there only
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
