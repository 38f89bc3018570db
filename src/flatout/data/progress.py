"""Progress of the child, shown by the parent: what it is doing, for how long, and how much time is left at most."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from flatout.report.formatting import clean


class Progress:
    """On a terminal one line that is updated; elsewhere one line for each activity."""

    def __init__(self, path: Path, seconds: float, quiet: bool = False, stream: Any = None) -> None:
        self._path = path
        self._seconds = seconds
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._moving = self._stream.isatty()
        self._began = time.monotonic()
        self.working_since: float | None = None
        """When the first activity began; before that, the program itself runs."""
        self._read = 0
        self._text = "starting the program, which imports TensorFlow"

    def __enter__(self) -> Progress:
        self._say()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._moving and not self._quiet:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def update(self) -> None:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        for line in lines[self._read :]:
            self.working_since = self.working_since or time.monotonic()
            self._text = clean(line.partition("\t")[2], 100)
            if not self._moving:
                self._say()
        self._read = len(lines)
        if self._moving:
            self._say()

    def _say(self) -> None:
        if self._quiet:
            return
        line = f"flatout: {_clock(time.monotonic() - self._began)}  {self._text}"
        if self.working_since is not None:
            left = max(self._seconds - (time.monotonic() - self.working_since), 0.0)
            line += f"  ({_clock(left)} left at most)"
        self._stream.write(f"\r\x1b[K{line}" if self._moving else f"{line}\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
