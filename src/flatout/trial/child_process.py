"""One trial as the coordinator sees it: a process in a group of its own, held at its gate, spoken to over two pipes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.cures._catalogue import environment_of
from flatout.model.errors import Internal
from flatout.process.last_words import last_words
from flatout.process.warden import Warden, kill_group, signal_group
from flatout.trial import launcher, patched_run
from flatout.trial.nursery import Forked, Gone, Nurseries
from flatout.trial.patched_run import program_place


@dataclass(frozen=True)
class Launch:
    """How to start a trial of the program."""

    command: tuple[str, ...]
    levers: tuple[str, ...] = ()
    module: str | None = None
    priority: int = 0
    """The least rank of what counts as a step…"""
    passing: tuple[int, ...] = ()
    """…and ranks of training that do not: a `fit` of six batches in front of an hour of predictions."""
    fills: bool = False
    """Its first epoch fills a cache: it is measured from the second one on."""
    seed: int = 0
    calm: bool = False
    """Without dropout and noise inside the model."""
    shaken: bool = False
    """With weights that begin a few roundings apart."""
    sources: tuple[tuple[str, str], ...] = ()
    """(file of the user, file with the text to run in its place)."""


class Ended(Internal):
    """The program ended by itself: what it says is why no further step will come."""


class Overdue(Internal):
    """The program did not answer in the time it was given."""


class ChildProcess:
    def __init__(self, launch: Launch, directory: Path, warden: Warden, nurseries: Nurseries | None = None) -> None:
        self.launch = launch
        self.directory = directory
        self.warden = warden
        self.peak_bytes = 0
        self._pending = b""
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        for_gate, to_gate = os.pipe()
        from_gate, for_words = os.pipe()
        try:
            self.process = _forked(launch, directory, nurseries, (for_gate, for_words)) or _started(
                launch, directory, (for_gate, for_words)
            )
        finally:
            os.close(for_gate)
            os.close(for_words)
        self.group = self.process.pid
        warden.watch(self.group)
        self._to_gate, self._from_gate = to_gate, from_gate
        self.started = time.monotonic()
        self.steps_made: int | None = None
        """Of a program that has come to its end."""

    # ── talking ──────────────────────────────────────────────────────────────────────────────────────────────

    def go(self, steps: int) -> None:
        signal_group(self.group, signal.SIGCONT)
        try:
            os.write(self._to_gate, json.dumps({"do": "go", "steps": steps}).encode("ascii") + b"\n")
        except OSError:
            raise Ended(self.why_ended()) from None

    def answer(self, timeout: float, memory_limit: int | None = None) -> dict[str, Any]:
        """The next line from the gate."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Overdue(f"no answer in {timeout:.0f} s")
            ready, _, _ = select.select([self._from_gate], [], [], min(left, 0.5))
            self.peak_bytes = max(self.peak_bytes, self.resident_bytes())
            if memory_limit is not None and self.peak_bytes > memory_limit:
                raise Overdue(f"it took {self.peak_bytes / 2**30:.1f} GiB of memory")
            if ready:
                chunk = os.read(self._from_gate, 1 << 16)
                if not chunk:
                    raise Ended(self.why_ended())
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        said = dict(json.loads(line))
        if said["say"] == "end":
            self.steps_made = int(said["steps"])
            return self.answer(max(deadline - time.monotonic(), 10.0), memory_limit)
        return said

    def hold(self) -> None:
        """Stop all of it until `go`. At its gate alone its other threads would go on: a pipeline would disturb the
        others while it fills its buffers, and the next steps would find them full."""
        signal_group(self.group, signal.SIGSTOP)

    # ── looking at it ────────────────────────────────────────────────────────────────────────────────────────

    def resident_bytes(self) -> int:
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return 0

    def why_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        if code == 0:
            return "the program ended"
        return f"the program failed: {self.last_words() or f'exit code {code}'}"

    @property
    def ended_well(self) -> bool:
        return self.process.poll() == 0

    def last_words(self) -> str:
        return last_words(self.directory / "output.txt")

    def end(self) -> None:
        """Kill it and all it has started; its scratch files go with it."""
        kill_group(self.group)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self.warden.forget(self.group)
        for descriptor in (self._to_gate, self._from_gate):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        shutil.rmtree(self.directory / "tmp", ignore_errors=True)
        shutil.rmtree(self.directory / "files", ignore_errors=True)


def _started(launch: Launch, directory: Path, gate: tuple[int, int]) -> subprocess.Popen[bytes]:
    """As a program of its own."""
    for descriptor in gate:
        os.set_inheritable(descriptor, True)
    command, variables = prepared(launch, directory, _held_at(gate, launch))
    with open(directory / "output.txt", "wb") as output:
        return subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=gate,
            start_new_session=True,
        )


def _forked(launch: Launch, directory: Path, nurseries: Nurseries | None, gate: tuple[int, int]) -> Forked | None:
    """Out of a nursery, where there is one for what has to be set before TensorFlow is imported."""
    variables = environment_of(launch.levers)
    nursery = nurseries.for_variables(variables) if nurseries is not None else None
    place = program_place(launch.command)
    if nursery is None or place is None:
        return None
    request = {
        "arguments": launch.command[place:],
        "environment": {**_environment(directory), **variables},
        "settings": _settings(launch, directory, _held_at(gate, launch)),
        "sources": dict(launch.sources),
        "output": str((directory / "output.txt").resolve()),
    }
    try:
        return nursery.start(request, directory, gate)
    except Gone:
        return None


def _held_at(gate: tuple[int, int], launch: Launch) -> dict[str, Any]:
    steps = {"priority": launch.priority, "passing": launch.passing, "fills": launch.fills}
    return {"gate": {"read": gate[0], "write": gate[1], **steps, "coordinator": os.getpid()}}


def prepared(launch: Launch, directory: Path, role: dict[str, Any]) -> tuple[Sequence[str], dict[str, str]]:
    """Command and environment of a trial."""
    variables = launcher.environment_for(_settings(launch, directory, role), _environment(directory))
    variables.update(environment_of(launch.levers))
    return patched_run.command(launch.command, dict(launch.sources)), variables


def _settings(launch: Launch, directory: Path, role: dict[str, Any]) -> dict[str, Any]:
    """What the child is told."""
    scouting = bool(role.get("scout"))
    return {
        "directory": str(directory),
        "trace": scouting,
        "sample": scouting,
        "module": launch.module,
        "levers": list(launch.levers),
        "trial": {"seed": launch.seed, "calm": launch.calm, "shaken": launch.shaken, **role},
    }


def _environment(directory: Path) -> dict[str, str]:
    return {"PYTHONHASHSEED": "0", **os.environ, "TMPDIR": str(directory / "tmp")}
