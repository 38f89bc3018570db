"""Writes what the child sees to disk, early and in small pieces, so that a kill at any moment loses almost nothing.

`facts.jsonl` holds one JSON object a line (functions, traces, notes). `counters.jsonl` holds the totals that only grow
and is replaced whole each time, so that a long run does not fill the disk; so is a file for each `state`. `ticks.bin`
holds step candidates as rows of float64. A full disk stops the recording, never the program.

A program may make ten million steps, each with facts of its own (a `fit` for every batch): of each kind so many are
written and the others counted.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

TICK_FIELDS = ("stream", "n", "start", "end", "input", "trace", "call", "sync")
"""Columns of ticks.bin. `input`, `trace`, `call` and `sync` are running totals in seconds at the end of the tick, so
that the difference of two rows of the same stream is what happened between them."""

MOST_FACTS = 200_000
"""Of one kind, appended one by one: as many as there are rows of a stream (`following.MOST_ROWS`)."""
MOST_BYTES = 32 << 20
"""Of all facts of one kind."""


class Recorder:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.broken: str | None = None
        self._lock = threading.RLock()  # a signal handler of the program's may end it in the midst of a flush
        self._counting: tuple[int, list[bytes]] | None = None
        self._ticks = array.array("d")
        self._facts = _File(os.path.join(directory, "facts.jsonl"))
        self._rows = _File(os.path.join(directory, "ticks.bin"))
        self._written: dict[str, list[int]] = {}
        """By kind: facts and bytes that were appended, and facts that were left out."""
        self._counters = os.path.join(directory, "counters.jsonl")
        self.extend: Callable[[tuple[float, ...]], None] = self._ticks.extend

    def fact(self, kind: str, **data: Any) -> None:
        """Append one fact now. Values that JSON does not know are written as text."""
        counting = self._counting
        if counting is not None and counting[0] == threading.get_ident():
            counting[1].append(_line(kind, data))
            return
        written = self._written.setdefault(kind, [0, 0, 0])
        if written[0] >= MOST_FACTS or written[1] >= MOST_BYTES:
            written[2] += 1
            return
        line = _line(kind, data)
        written[0] += 1
        written[1] += len(line)
        self._guarded(lambda: self._facts.write(line))

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Facts written inside, by this thread, are totals: they replace those of the last time."""
        if self._counting is not None:
            yield
            return
        lines: list[bytes] = []
        self._counting = (threading.get_ident(), lines)
        try:
            yield
        finally:
            self._counting = None
        left_out = {kind: found[2] for kind, found in list(self._written.items()) if found[2]}
        if left_out:
            lines.append(_line("left-out", {"facts": left_out}))
        self._guarded(lambda: _replace(self._counters, b"".join(lines)))

    def state(self, kind: str, **data: Any) -> None:
        """Write one fact in place of the last one of its kind, from any thread, whether there are steps or not."""
        line = _line(kind, data)
        self._guarded(lambda: _replace(os.path.join(self.directory, f"state-{kind}.jsonl"), line))

    def flush(self) -> None:
        with self._lock:
            count = len(self._ticks)  # what other threads add meanwhile stays for the next time
            rows = self._ticks[:count].tobytes()
            del self._ticks[:count]
        if rows:
            self._guarded(lambda: self._rows.write(rows))

    def after_fork(self) -> None:
        """In a forked child: write nothing, and wait for no lock that a thread of the parent held."""
        self.broken = "forked"
        self._lock = threading.RLock()
        self._counting = None

    def _guarded(self, write: Callable[[], None]) -> None:
        if self.broken:
            return
        try:
            write()
        except OSError as error:
            self.broken = f"{error.strerror or error}"


def _line(kind: str, data: dict[str, Any]) -> bytes:
    data["kind"] = kind
    try:
        text = json.dumps(data, default=str, ensure_ascii=True, separators=(",", ":"))
    except Exception:  # values are the program's own objects, and so is what makes text of them
        text = '{"text":"a fact of the program could not be written","kind":"note"}'
    return (text + "\n").encode("ascii")


class _File:
    """A file to append to. A program may close all descriptors and get our number for a file of its own: never write
    into that, open ours again instead."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._open()

    def _open(self) -> None:
        low = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # Out of the way: the first file that the program opens keeps the number it would have had.
            self.descriptor = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 512)
            os.close(low)
        except OSError:
            self.descriptor = low
        self.identity = _identity(self.descriptor)

    def write(self, data: bytes) -> None:
        if _identity(self.descriptor) != self.identity:
            self._open()
        while data:
            data = data[os.write(self.descriptor, data) :]


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _replace(path: str, data: bytes) -> None:
    temporary = f"{path}.new"
    try:
        with open(temporary, "wb", buffering=0) as stream:
            while data:
                data = data[stream.write(data) or 0 :]
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
