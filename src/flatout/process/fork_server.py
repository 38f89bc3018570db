"""Starts children in a fraction of the time: a process that has done the slow imports is forked for each.

Importing TensorFlow costs more than most of what a child has to do. A forked child shares nothing with the others but
that import. Where there can be no fork server (a system without process descriptors, threads in the way), a child is
started as a program of its own. `forking.py` is the server's own side.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from flatout.model.errors import Internal
from flatout.process import launch
from flatout.process.forking import LONGEST_MESSAGE, Exited, Fork, Import, Imported, Started
from flatout.process.messages import decode, encode
from flatout.process.watchdog import Watchdog, is_over, kill_group

IMPORT_SECONDS = 120.0
LOOK_SECONDS = 0.5

Reply = TypeVar("Reply", Imported, Started, Exited)


class ServerGone(Internal):
    """There is no fork server, or no longer. The text says why."""


def can_fork() -> bool:
    """Whether this system has what a fork server needs."""
    if not hasattr(os, "pidfd_open") or not hasattr(socket, "send_fds"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class ForkServer:
    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output: Path, watchdog: Watchdog
    ) -> None:
        """`command` is given the number of its socket as the last word; what it prints goes to `output`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self.process = launch.start([*command, str(number)], environment, output, append=True, descriptors=[number])
        self.gone = ""
        """Why no child can be started here."""
        self._watchdog = watchdog
        watchdog.watch(self.process.pid)
        self._channel = ours
        self._exit_codes: dict[int, int] = {}
        self._lock = threading.RLock()  # children are started from several threads

    def prepare(self, packages: Sequence[str]) -> None:
        """Begin to import these. Nothing waits here: `start` does."""
        with contextlib.suppress(ServerGone):
            self._send(Import(tuple(packages)))

    def start(
        self, request: object, directory: Path, output: Path, descriptors: Sequence[int], mark: int = 0
    ) -> ForkedProcess:
        """Fork a child and hand it the message `request`. It begins once the watchdog knows of it."""
        file = directory / "request.json"
        file.write_text(encode(request), encoding="utf-8")
        released, release = os.pipe()
        try:
            with self._lock:
                self._send(Fork(str(file.resolve()), str(output.resolve()), mark), [released, *descriptors])
                pid = self._wait_for_reply(Started, IMPORT_SECONDS).pid
            self._watchdog.watch(pid, mark)
            os.write(release, b".")
        finally:
            os.close(released)
            os.close(release)
        return ForkedProcess(pid, self)

    def exit_code(self, pid: int) -> int | None:
        """The exit code of a child, once it has ended."""
        with self._lock:
            while not self.gone and self._readable(0):
                self._receive()
            if pid not in self._exit_codes and self.gone and is_over(pid):
                self._exit_codes[pid] = -9  # there is no server left that knows more
            return self._exit_codes.get(pid)

    def wait_for(self, pid: int, seconds: float) -> int | None:
        """The exit code of a child; None where it has not ended in this time."""
        deadline = time.monotonic() + seconds
        while (code := self.exit_code(pid)) is None and (left := deadline - time.monotonic()) > 0:
            if self.gone:
                time.sleep(min(left, 0.05))
            else:
                self._readable(min(left, LOOK_SECONDS))  # another thread may have read what is waited for here
        return code

    def close(self) -> None:
        self._end("closed")

    def _send(self, message: Import | Fork, descriptors: Sequence[int] = ()) -> None:
        if self.gone:
            raise ServerGone(self.gone)
        try:
            socket.send_fds(self._channel, [encode(message).encode("ascii")], list(descriptors))
        except OSError as error:
            raise self._end(f"it does not listen: {error}") from None

    def _wait_for_reply(self, kind: type[Reply], seconds: float) -> Reply:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._readable(left):
                reply = self._receive()
                if self.gone:
                    break
                if isinstance(reply, kind):
                    return reply
        raise self._end(self.gone or "it does not answer")

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._channel], [], [], seconds)[0])

    def _receive(self) -> Imported | Started | Exited | None:
        try:
            text = self._channel.recv(LONGEST_MESSAGE)
        except OSError:
            text = b""
        if not text:
            self._end("it has ended")
            return None
        reply = decode(text, Imported, Started, Exited)
        if isinstance(reply, Imported) and reply.hindrance:
            self._end(reply.hindrance)
        elif isinstance(reply, Exited):
            self._exit_codes[reply.pid] = reply.code
        return reply

    def _end(self, why: str) -> ServerGone:
        if not self.gone:
            self.gone = why
            kill_group(self.process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)
            self._watchdog.forget(self.process.pid)
            self._channel.close()
        return ServerGone(self.gone)


class ForkedProcess:
    """A forked child; as much of `subprocess.Popen` as its owners need."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self.pid = pid
        self.server = server
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self.server.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        self.returncode = self.server.wait_for(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode
