"""Starts trials in a fraction of the time: a process that has imported TensorFlow, no more, is forked for each.

Importing TensorFlow costs more than most trials. A forked process shares nothing with other trials but that import.
Levers that set variables before the import have a nursery of their own. Wherever none can be had (no Python command, a
system without process descriptors, threads in the way) a trial is started as a program of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flatout.model.errors import Internal
from flatout.process.warden import Warden, kill_group
from flatout.trial import launcher
from flatout.trial.patched_run import program_place

MAIN = launcher.SITE / "nursery_main.py"
IMPORT_SECONDS = 120.0
MOST = 4
"""Each holds some hundred megabytes."""
HARMLESS = ("TF_CPP_",)
"""Variables that change what TensorFlow prints, not what it does."""


class Gone(Internal):
    """There is no nursery, or no longer."""


class Nursery:
    def __init__(self, command: Sequence[str], environment: dict[str, str], output: Path, warden: Warden) -> None:
        """`command` is given the number of its socket as the last word; what it prints goes to `output`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with open(output, "ab") as printed, theirs:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.warden = warden
        warden.watch(self.process.pid)
        self._channel = ours
        self._codes: dict[int, int] = {}
        self.gone = ""
        """Why no trial can be started here."""

    def prepare(self, packages: Sequence[str]) -> None:
        """Ask for imports; they are waited for by whoever needs them."""
        with contextlib.suppress(Gone):
            self._send({"import": list(packages)})

    def start(self, request: dict[str, Any], place: Path, descriptors: Sequence[int]) -> Forked:
        """Fork a trial. It waits until the warden knows of it."""
        file = place / "request.json"
        file.write_text(json.dumps(request), encoding="utf-8")
        hold, release = os.pipe()
        try:
            self._send({"request": str(file.resolve())}, [hold, *descriptors])
            said = self._listen_for("started", IMPORT_SECONDS)
            self.warden.watch(said["started"])
            os.write(release, b".")
        finally:
            os.close(hold)
            os.close(release)
        return Forked(said["started"], self)

    def code_of(self, pid: int) -> int | None:
        """The exit code of a trial, once it has ended."""
        while not self.gone and self._readable(0):
            self._receive()
        if pid not in self._codes and self.gone and not Path(f"/proc/{pid}").exists():
            self._codes[pid] = -9  # nobody is left to ask
        return self._codes.get(pid)

    def wait_for(self, pid: int, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while (code := self.code_of(pid)) is None and (left := deadline - time.monotonic()) > 0:
            if self.gone:
                time.sleep(min(left, 0.05))
            else:
                self._readable(left)
        return code

    def close(self) -> None:
        self._end("closed")

    # ── talking ──────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self.gone:
            raise Gone(self.gone)
        try:
            socket.send_fds(self._channel, [json.dumps(message).encode("ascii")], list(descriptors))
        except OSError as error:
            raise self._end(f"it does not listen: {error}") from None

    def _listen_for(self, word: str, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._readable(left):
                said = self._receive()
                if self.gone:
                    break
                if word in said:
                    return said
        raise self._end(self.gone or "it does not answer")

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._channel], [], [], seconds)[0])

    def _receive(self) -> dict[str, Any]:
        try:
            text = self._channel.recv(1 << 16)
        except OSError:
            text = b""
        said: dict[str, Any] = json.loads(text) if text else {}
        if not said:
            self._end("it has ended")
        elif said.get("hindrance"):
            self._end(said["hindrance"])
        elif "ended" in said:
            self._codes[said["ended"]] = said["code"]
        return said

    def _end(self, why: str) -> Gone:
        if not self.gone:
            self.gone = why
            kill_group(self.process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)
            self.warden.forget(self.process.pid)
            self._channel.close()
        return Gone(self.gone)


class Forked:
    """A forked trial; as much of `subprocess.Popen` as a trial needs."""

    def __init__(self, pid: int, nursery: Nursery) -> None:
        self.pid = pid
        self.nursery = nursery
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self.nursery.code_of(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        self.returncode = self.nursery.wait_for(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"trial {self.pid}", timeout)
        return self.returncode


def of_trials(
    interpreter: Sequence[str], program: str, environment: dict[str, str], directory: Path, warden: Warden
) -> Nursery:
    """`interpreter`: the command up to the program, `python -X dev` for one. `program`: its file, or `-m`."""
    variables = launcher.environment_for({}, environment)
    variables.pop("FLATOUT_OBSERVE")
    command = [*interpreter, str(MAIN), str(launcher.PACKAGE), program]
    return Nursery(command, variables, directory / "nursery.txt", warden)


class Nurseries:
    """One nursery for each set of variables that levers want set before TensorFlow is imported; one without any."""

    def __init__(self, command: Sequence[str], warden: Warden, directory: Path) -> None:
        self.command = tuple(command)
        self.warden = warden
        self.directory = directory
        self.packages: Sequence[str] = ("tensorflow",)
        self.changed: dict[str, str | None] = {}
        self._made: dict[frozenset[tuple[str, str]], Nursery | None] = {}

    def open(self) -> None:
        """Begin to import, before the first trial is asked for."""
        self.for_variables({})

    def furnish(self, packages: Sequence[str], changed: dict[str, str | None]) -> None:
        """Import what the program imports, under the variables that it sets before."""
        if any(not name.startswith(HARMLESS) for name in changed):
            self.close()
        self.packages, self.changed = packages or self.packages, changed
        self.open()
        for nursery in self._made.values():
            if nursery is not None:
                nursery.prepare(self.packages)

    def for_variables(self, variables: dict[str, str]) -> Nursery | None:
        key = frozenset(variables.items())
        if key not in self._made:
            enough = sum(one is not None for one in self._made.values()) >= MOST
            self._made[key] = None if enough else self._make(variables)
        nursery = self._made[key]
        return None if nursery is None or nursery.gone else nursery

    def close(self) -> None:
        for nursery in self._made.values():
            if nursery is not None:
                nursery.close()
        self._made.clear()

    def _make(self, variables: dict[str, str]) -> Nursery | None:
        place = program_place(self.command)
        if place is None or not hasattr(os, "pidfd_open") or not hasattr(socket, "send_fds"):
            return None
        environment = {"PYTHONHASHSEED": "0", **os.environ, **variables}
        for name, value in self.changed.items():
            environment.pop(name, None) if value is None else environment.update({name: value})
        try:
            os.close(os.pidfd_open(os.getpid()))
            nursery = of_trials(self.command[:place], self.command[place], environment, self.directory, self.warden)
        except OSError:
            return None
        nursery.prepare(self.packages)
        return nursery
