"""`--for 10m`: a program that runs on after it was observed, and its case, made when that time is up.

The program itself ends the observation and writes its end; a thread here waits for that, makes the case and shows it
while the program goes on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flatout.model.case import Case

LOOK_SECONDS = 0.25
END = b'"kind":"end"}'
"""How the last fact of a recording ends."""
TAIL = 4096


class ObservedPart:
    """Makes the case once the observed part of a run is over, if the program has not ended by then."""

    def __init__(self, directory: Path, seconds: float, conclude: Callable[[float], Case | None]) -> None:
        self.directory = directory
        self.seconds = seconds
        self.conclude = conclude
        """Makes the case of a program that was observed for so many seconds."""
        self.over = False
        """Whether the case was made, or could not be."""
        self.case: Case | None = None
        self._ended = threading.Event()

    def start(self, pid: int) -> Callable[[], None]:
        """Called when the program was started. Returns what is to be called when it has ended."""
        began = time.perf_counter()
        thread = threading.Thread(target=self._wait, args=(began,), daemon=True)
        thread.start()

        def end() -> None:
            self._ended.set()
            thread.join()

        return end

    def _wait(self, began: float) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            passed = time.perf_counter() - began
            if passed >= self.seconds and _is_written(self.directory / "facts.jsonl"):
                self.case = self.conclude(passed)
                self.over = True
                return


def _is_written(path: Path) -> bool:
    try:
        with open(path, "rb") as stream:
            stream.seek(-min(TAIL, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            return END in stream.read()
    except OSError:
        return False
