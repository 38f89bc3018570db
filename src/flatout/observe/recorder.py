"""Writes what the child sees to disk, early and in small pieces, so that a kill at any moment loses almost nothing.

`facts.jsonl` holds one JSON object a line (functions, pipelines, counters). `ticks.bin` holds step candidates as rows
of float64. Both are appended with plain writes; a full disk stops the recording, never the program.
"""

from __future__ import annotations

import array
import json
import os
import threading
from collections.abc import Callable
from typing import Any

TICK_FIELDS = ("stream", "n", "start", "end", "input", "trace", "call", "sync")
"""Columns of ticks.bin. `input`, `trace`, `call` and `sync` are running totals in seconds at the end of the tick, so
that the difference of two rows of the same stream is what happened between them."""


class Recorder:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.broken: str | None = None
        self._lock = threading.Lock()
        self._ticks = array.array("d")
        self._facts = os.open(os.path.join(directory, "facts.jsonl"), _APPEND, 0o644)
        self._rows = os.open(os.path.join(directory, "ticks.bin"), _APPEND, 0o644)
        self.extend: Callable[[tuple[float, ...]], None] = self._ticks.extend

    def fact(self, kind: str, **data: Any) -> None:
        """Append one fact now. Values that JSON does not know are written as text."""
        data["kind"] = kind
        text = json.dumps(data, default=str, ensure_ascii=True, separators=(",", ":")) + "\n"
        self._write(self._facts, text.encode("ascii"))

    def flush(self) -> None:
        if self._ticks:
            with self._lock:
                rows = self._ticks.tobytes()
                del self._ticks[:]
            self._write(self._rows, rows)

    def _write(self, descriptor: int, data: bytes) -> None:
        if self.broken:
            return
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError as error:
            # A full disk, or the program closed all its descriptors: stop recording, tell it at the end if possible.
            self.broken = f"{error.strerror or error}"


_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
