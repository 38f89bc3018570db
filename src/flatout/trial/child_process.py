"""One trial as its parent sees it: a process in a group of its own, held at its gate, spoken to over two pipes."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from flatout.cures import environment_of, in_order
from flatout.model.errors import Internal
from flatout.model.vocabulary import StreamKind
from flatout.observe.levers import LeverReport
from flatout.observe.settings import ObserveSettings
from flatout.process.fence.means import NOTHING, Fence, Leave, around, decide, with_copy
from flatout.process.fork_server import ForkedProcess, ServerGone
from flatout.process.launch import Command
from flatout.process.launch import start as launch_process
from flatout.process.memory import resident_bytes
from flatout.process.messages import decode, encode
from flatout.process.watchdog import Tree, Watchdog
from flatout.trial import gpu_sharing, launcher, loggers, patched_run, refusals, temporary
from flatout.trial.fork_servers import ForkServers
from flatout.trial.messages import BlockDone, Go, ProgramEnded, Warm
from flatout.trial.patched_run import program_index
from flatout.trial.settings import (
    ChildSettings,
    GateSettings,
    GuestSettings,
    ScoutSettings,
    TrialRequest,
    TrialSettings,
    WholeSettings,
)

Role = GateSettings | ScoutSettings | WholeSettings | GuestSettings
Answered = TypeVar("Answered", Warm, BlockDone)


@dataclass(frozen=True)
class Launch:
    """How to start a trial of the program."""

    command: tuple[str, ...]
    levers: tuple[str, ...] = ()
    module: str | None = None
    least_step: StreamKind | None = None
    """The lowest kind of stream that counts as a step; None: any."""
    not_steps: tuple[StreamKind, ...] = ()
    """Kinds that do not: the `fit` of six batches in front of an hour of predictions."""
    fills_cache: bool = False
    """Its first epoch fills a cache: it is measured from the second one on."""
    warm_steps: int = 0
    """Of a program that ends soon: it is warm after so many steps. 0: once it runs at its own pace."""
    seed: int | None = 0
    pinned: bool = False
    """With random numbers that depend on where and how often they are drawn alone: for comparing, not for timing."""
    perturbed: bool = False
    """With weights that begin a few roundings apart."""
    sources: tuple[tuple[str, str], ...] = ()
    """(file of the user, file with the text to run in its place)."""
    compiled: str = ""
    """Where trials at a gate keep what was compiled for a GPU, and those of `compile-cache` what XLA compiles; empty:
    nowhere."""
    leave: Leave = NOTHING
    """What it may do besides."""
    kept: str = ""
    """The directory with what kept cells of a notebook have made; empty where they run."""


class Ended(Internal):
    """The program ended by itself. The text says why no further step will come."""


class Overdue(Internal):
    """The program did not answer in the time it was given, or took too much memory."""


class ChildProcess:
    def __init__(
        self, launch: Launch, directory: Path, watchdog: Watchdog, fork_servers: ForkServers | None = None
    ) -> None:
        self.launch = launch
        self.directory = directory
        self.peak_bytes = 0
        self.levers: dict[str, LeverReport] = {}
        """What its levers have last reported."""
        self.steps_made: int | None = None
        """Of a program that has come to its end."""
        self._watchdog = watchdog
        self._pending = b""
        directory.mkdir(parents=True, exist_ok=True)
        for_gate, self._to_gate = os.pipe()
        self._from_gate, for_answers = os.pipe()
        ends = (for_gate, for_answers)
        fence = _fence(launch, directory)
        try:
            self.process = _forked(launch, directory, fork_servers, ends, fence) or _started(
                launch, directory, ends, fence
            )
        finally:
            os.close(for_gate)
            os.close(for_answers)
        self.group = self.process.pid
        self.tree = Tree(self.group, fence.mark)
        watchdog.watch(self.group, fence.mark, temporary.link_of(directory))
        self.started = time.monotonic()

    # ── talking ──────────────────────────────────────────────────────────────────────────────────────────────

    def warm(self, timeout: float, memory_limit: int | None = None) -> Warm:
        """Wait until the program has warmed up and is held at its gate."""
        return self._answer(Warm, timeout, memory_limit)

    def go(self, steps: int, calls: int = 3) -> None:
        """Let it run about this many steps, in no fewer calls; `block` waits for them."""
        self.tree.signal(signal.SIGCONT)
        try:
            os.write(self._to_gate, encode(Go(steps, calls)).encode("ascii") + b"\n")
        except OSError:
            raise Ended(self.why_ended()) from None

    def block(self, timeout: float, memory_limit: int | None = None) -> BlockDone:
        """The times of the steps that `go` has let it run."""
        return self._answer(BlockDone, timeout, memory_limit)

    def hold(self) -> None:
        """Stop all of it until `go`. At its gate alone its other threads would go on: a pipeline would disturb the
        others while it fills its buffers, and the next steps would find them full."""
        self.tree.signal(signal.SIGSTOP)

    def _answer(self, kind: type[Answered], timeout: float, memory_limit: int | None) -> Answered:
        deadline = time.monotonic() + timeout
        message = decode(self._line(timeout, memory_limit), kind, ProgramEnded)
        if isinstance(message, ProgramEnded):
            self.steps_made, self.levers = message.steps, message.levers or self.levers
            return self._answer(kind, max(deadline - time.monotonic(), 10.0), memory_limit)
        self.levers = message.levers
        return message

    def _line(self, timeout: float, memory_limit: int | None) -> bytes:
        """The next line from the gate."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Overdue(f"no answer in {timeout:.0f} s")
            ready, _, _ = select.select([self._from_gate], [], [], min(left, 0.5))
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self.process.pid))
            if memory_limit is not None and self.peak_bytes > memory_limit:
                raise Overdue(f"it took {self.peak_bytes / 2**30:.1f} GiB of memory")
            if ready:
                chunk = os.read(self._from_gate, 1 << 16)
                if not chunk:
                    raise Ended(self.why_ended())
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    # ── its end ──────────────────────────────────────────────────────────────────────────────────────────────

    def why_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        if code == 0:
            return "the program ended"
        return f"the program failed: {refusals.last_words(self.directory / 'output.txt') or f'exit code {code}'}"

    @property
    def ended_well(self) -> bool:
        return self.process.poll() == 0

    def end(self) -> None:
        """Kill it and all it has started; its scratch files go with it."""
        self.tree.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self._watchdog.forget(self.group)
        for descriptor in (self._to_gate, self._from_gate):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        remove_scratch(self.directory)


def remove_scratch(directory: Path) -> None:
    """What a trial has written and nobody reads."""
    temporary.remove_link(directory)
    shutil.rmtree(directory / temporary.NAME, ignore_errors=True)
    shutil.rmtree(directory / "files", ignore_errors=True)


def prepared(launch: Launch, directory: Path, role: Role, fence: Fence | None = None) -> Command:
    """A trial that is a program of its own."""
    fence = fence or _fence(launch, directory)
    settings = _settings(launch, directory, role, fence)
    variables = launcher.environment_for(settings, _environment(launch, directory, role))
    variables.update(environment_of(launch.levers))
    sources = dict(launch.sources)
    if not sources and _in_pieces(settings):
        sources = patched_run.as_it_is(launch.command)  # the interpreter itself runs a program as a whole
    words = patched_run.command(launch.command, sources)
    return Command(fence.command(words), variables, fence.mark, temporary.link_of(directory))


def _in_pieces(settings: ChildSettings) -> bool:
    """Whether cells of a notebook are kept or restored."""
    trial = settings.trial
    return trial is not None and (bool(trial.kept) or (isinstance(trial.role, ScoutSettings) and trial.role.keeps))


def _fence(launch: Launch, directory: Path) -> Fence:
    """Raises `CannotFence`."""
    also = (launch.compiled,) if launch.compiled else ()
    for directory_of_all in also:
        Path(directory_of_all).mkdir(parents=True, exist_ok=True)  # what is not there cannot be written
    fence = around(decide(launch.leave), directory, also, os.environ)
    if program_index(launch.command) is not None:
        return fence
    return with_copy(fence, os.getcwd())  # a shell script makes directories and copies files by other programs


def _started(launch: Launch, directory: Path, ends: tuple[int, int], fence: Fence) -> subprocess.Popen[bytes]:
    """As a program of its own."""
    for descriptor in ends:
        os.set_inheritable(descriptor, True)
    command = prepared(launch, directory, _gate(launch, ends), fence)
    return launch_process(command.words, command.environment, directory / "output.txt", descriptors=ends)


def _forked(
    launch: Launch, directory: Path, fork_servers: ForkServers | None, ends: tuple[int, int], fence: Fence
) -> ForkedProcess | None:
    """From a fork server, where there is one for the variables that must be set before TensorFlow is imported."""
    variables = environment_of(launch.levers)
    server = fork_servers.for_variables(variables) if fork_servers is not None else None
    index = program_index(launch.command)
    if server is None or index is None:
        return None
    gate = _gate(launch, ends)
    request = TrialRequest(
        arguments=launch.command[index:],
        environment={**_environment(launch, directory, gate), **variables},
        settings=_settings(launch, directory, gate, fence),
        sources=dict(launch.sources),
        fence=replace(fence, mounts=False, network="", mark=0),  # its server has these already
    )
    try:
        return server.start(request, directory, directory / "output.txt", ends, fence.mark)
    except ServerGone:
        return None


def _gate(launch: Launch, ends: tuple[int, int]) -> GateSettings:
    read, write = ends
    return GateSettings(
        read, write, os.getpid(), launch.least_step, launch.not_steps, launch.fills_cache, launch.warm_steps
    )


def _settings(launch: Launch, directory: Path, role: Role, fence: Fence) -> ChildSettings:
    observed = not isinstance(role, GateSettings | WholeSettings)  # nobody reads a trace or samples of these
    watched = isinstance(role, WholeSettings) and role.watched
    return ChildSettings(
        directory=str(directory),
        observe=ObserveSettings(trace=observed, sample=observed or watched, graphs=observed or watched),
        module=launch.module,
        levers=in_order(launch.levers),
        trial=TrialSettings(
            role,
            launch.seed,
            launch.pinned,
            launch.perturbed,
            (*fence.writable, *fence.copied),
            fence.held,
            fence.moves,
            launch.leave.network,
            launch.kept if isinstance(role, GateSettings | ScoutSettings) else "",  # a whole run runs all of it
        ),
    )


def _environment(launch: Launch, directory: Path, role: Role) -> dict[str, str]:
    variables = {"PYTHONHASHSEED": "0", **os.environ, "TMPDIR": temporary.make(directory)}
    variables |= loggers.kept_local(directory / temporary.NAME)
    kept = isinstance(role, GateSettings) and launch.compiled  # any other trial compiles as the user's own run does
    if launch.compiled:
        variables["XLA_CACHE_DIRECTORY"] = f"{launch.compiled}/starts"  # of `compile-cache`; nothing else reads it
    return variables | gpu_sharing.variables(variables, Path(launch.compiled) if kept else None)
