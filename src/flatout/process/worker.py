"""A child process that is asked one thing at a time, with a limit on time and memory.

What it can be asked is named by the caller: `package.module:Class`, whose methods are the tasks. They take values that
JSON knows and return a dict of them. `worker_main.py` is the child's side.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flatout.model.errors import Internal
from flatout.process import launch
from flatout.process.fork_server import ForkedProcess, ForkServer, ServerGone
from flatout.process.memory import resident_bytes
from flatout.process.messages import decode, encode
from flatout.process.output import last_line
from flatout.process.watchdog import Watchdog, kill_group

MAIN = "flatout.process.worker_main"


@dataclass(frozen=True)
class WorkerRequest:
    """What a forked worker has to do."""

    tasks: str


@dataclass(frozen=True)
class Task:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    values: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    how: Literal["failed", "needless"]
    text: str


class WorkFailed(Internal):
    """A task was not done. The text says why."""

    def __init__(self, how: Literal["failed", "timeout", "memory", "needless"], text: str) -> None:
        super().__init__(text)
        self.how = how


class Worker:
    def __init__(
        self,
        tasks: str,
        log: Path,
        watchdog: Watchdog,
        server: ForkServer | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Forked from the server, where there is one; else a program of its own, with this environment."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.peak_bytes = 0
        self._pending = b""
        for_tasks, self._to_child = os.pipe()
        self._from_child, for_answers = os.pipe()
        ends = (for_tasks, for_answers)
        try:
            self.process = _forked(server, tasks, log, ends) or _started(tasks, log, ends, environment or os.environ)
        finally:
            os.close(for_tasks)
            os.close(for_answers)
        self._watchdog = watchdog
        watchdog.watch(self.process.pid)

    def ask(self, task: str, timeout: float, memory_limit: int | None = None, **arguments: Any) -> dict[str, Any]:
        """Do one task and return its answer. Raises WorkFailed; a worker that died or met a limit is gone then."""
        try:
            os.write(self._to_child, encode(Task(task, arguments)).encode() + b"\n")
        except OSError:
            raise self._gone() from None
        answer = self._answer(timeout, memory_limit)
        if isinstance(answer, Failure):
            raise WorkFailed(answer.how, answer.text)
        return answer.values

    def _answer(self, timeout: float, memory_limit: int | None) -> Answer | Failure:
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
        return decode(line, Answer, Failure)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Kill it and all that it has started. Does nothing the second time."""
        if self._to_child < 0:
            return
        kill_group(self.process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self._watchdog.forget(self.process.pid)
        for descriptor in (self._to_child, self._from_child):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._to_child = self._from_child = -1

    def _gone(self) -> WorkFailed:
        """The error for a worker that has died."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        self.end()
        printed = last_line(self.log)
        why = f": {printed}" if printed else ""
        if code is None or code >= 0:
            return WorkFailed("failed", f"its process ended with exit code {code}{why}")
        name = signal.Signals(-code).name if -code in signal.Signals.__members__.values() else str(-code)
        if name == "SIGKILL":
            return WorkFailed("memory", "its process was killed, most likely for taking too much memory")
        return WorkFailed("failed", f"its process crashed with {name}{why}")


def worker_server(
    watchdog: Watchdog, log: Path, environment: Mapping[str, str], packages: tuple[str, ...]
) -> ForkServer:
    """A fork server for workers, which begins to import these packages."""
    log.parent.mkdir(parents=True, exist_ok=True)
    server = ForkServer([sys.executable, "-m", MAIN], environment, log, watchdog)
    server.prepare(packages)
    return server


def _forked(server: ForkServer | None, tasks: str, log: Path, ends: tuple[int, int]) -> ForkedProcess | None:
    if server is None:
        return None
    directory = log.with_suffix(".request")
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return server.start(WorkerRequest(tasks), directory, log, ends)
    except ServerGone:
        return None


def _started(tasks: str, log: Path, ends: tuple[int, int], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", MAIN, tasks, *map(str, ends)]
    return launch.start(command, environment, log, append=True, descriptors=ends)
