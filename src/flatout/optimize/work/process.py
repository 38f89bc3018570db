"""A child process that is asked one thing at a time, with a limit on time and memory."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

from flatout.model.errors import Internal
from flatout.optimize.work.memory import resident_bytes
from flatout.optimize.work.nursery import Forked, Gone, Nursery
from flatout.process.last_words import last_words
from flatout.process.warden import Warden, kill_group


class WorkFailed(Internal):
    """What was asked did not come about. `how` is failed, timeout, memory or needless; the text says why."""

    def __init__(self, how: Literal["failed", "timeout", "memory", "needless"], text: str) -> None:
        super().__init__(text)
        self.how = how


class Worker:
    def __init__(self, log: Path, warden: Warden, nursery: Nursery | None = None) -> None:
        """Forked from the nursery, where there is one; else a program of its own."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.peak_bytes = 0
        self._pending = b""
        for_child, self._to_child = os.pipe()
        self._from_child, for_answers = os.pipe()
        try:
            self.process = _forked(nursery, log, (for_child, for_answers)) or _started(log, (for_child, for_answers))
        finally:
            os.close(for_child)
            os.close(for_answers)
        self._warden = warden
        warden.watch(self.process.pid)

    def ask(self, task: str, timeout: float, memory_limit: int | None = None, **arguments: Any) -> dict[str, Any]:
        """Ask, wait for the answer. A worker that failed an answer by dying or by its limits is gone; ask another."""
        try:
            os.write(self._to_child, json.dumps({"task": task, "arguments": arguments}).encode() + b"\n")
        except OSError:
            raise self._gone() from None
        said = self._answer(timeout, memory_limit)
        if "error" in said:
            raise WorkFailed(said["how"], str(said["error"]))
        return dict(said["answer"])

    def _answer(self, timeout: float, memory_limit: int | None) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                self.end()
                raise WorkFailed("timeout", f"no answer in {timeout:.0f} s")
            ready, _, _ = select.select([self._from_child], [], [], min(left, 0.2))
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self.process.pid))
            if memory_limit is not None and self.peak_bytes > memory_limit:
                self.end()
                raise WorkFailed("memory", f"it took more than {memory_limit / 2**30:.1f} GiB of memory")
            if ready:
                chunk = os.read(self._from_child, 1 << 16)
                if not chunk:
                    raise self._gone()
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return dict(json.loads(line))

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def _gone(self) -> WorkFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        self.end()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in signal.Signals.__members__.values() else str(-code)
            if name == "SIGKILL":
                return WorkFailed("memory", "its process was killed, most likely for taking too much memory")
            return WorkFailed("failed", f"its process crashed with {name}{self._last_words()}")
        return WorkFailed("failed", f"its process ended with exit code {code}{self._last_words()}")

    def _last_words(self) -> str:
        said = last_words(self.log)
        return f": {said}" if said else ""

    def end(self) -> None:
        """Kill it and all that it has started; may be called more than once."""
        if self._to_child < 0:
            return
        kill_group(self.process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self._warden.forget(self.process.pid)
        for descriptor in (self._to_child, self._from_child):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._to_child = self._from_child = -1


def _forked(nursery: Nursery | None, log: Path, descriptors: tuple[int, int]) -> Forked | None:
    if nursery is None:
        return None
    try:
        return nursery.worker(log, descriptors)
    except Gone:
        return None


def _started(log: Path, descriptors: tuple[int, int]) -> subprocess.Popen[bytes]:
    with open(log, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "flatout.optimize.work.child", *map(str, descriptors)],
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
        )
