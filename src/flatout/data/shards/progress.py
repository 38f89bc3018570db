"""Progress on standard error: one line that is updated on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time
from typing import TextIO

ON_TERMINAL, ELSEWHERE = 0.1, 10.0
"""Seconds between two updates."""


class Progress:
    def __init__(self, what: str, elements: int | None, size: int | None, quiet: bool = False) -> None:
        self.what, self.elements, self.size = what, elements, size
        self.done = self.bytes = 0
        self._stream: TextIO | None = None if quiet else sys.stderr
        self._moves = not quiet and sys.stderr.isatty()
        self._begin = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def report(self, elements: int, size: int) -> None:
        self.done += elements
        self.bytes += size
        now = time.monotonic()
        if self._stream is None or now - self._last < (ON_TERMINAL if self._moves else ELSEWHERE):
            return
        self._last = now
        line = f"flatout: {self.what} {self._text()}"
        self._stream.write(f"\r{line}\x1b[K" if self._moves else f"{line}\n")
        self._stream.flush()

    def end(self) -> None:
        if self._stream is not None and self._moves:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _text(self) -> str:
        speed = self.bytes / max(self.seconds, 1e-9)
        if self.elements is None or not self.size or not self.bytes:
            return f"{self.done:,} elements ({speed / 1e6:.1f} MB/s)"
        left = max(self.size - self.bytes, 0) / speed
        return f"{self.done:,} of {self.elements:,} ({speed / 1e6:.1f} MB/s, {clock(left)} left)"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
