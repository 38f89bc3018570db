"""Starts the ranks of a job on one machine: TF_CONFIG, free ports, a set of processors and a prefix of lines for each.

It is small on purpose: for trying a distributed program, and for tests. Where a cluster has a launcher of its own,
`flatout run --job DIR` stands in front of each rank's command there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from flatout.job import closing, place
from flatout.model.errors import ProgramNotFound

GRACE = 60.0
"""Seconds that a rank has to end, and to write its case, once it was told to."""
POLL = 0.05


@dataclass(frozen=True)
class Request:
    command: tuple[str, ...]
    workers: int
    servers: int = 0
    """Parameter servers; where there are some, a chief coordinates."""
    directory: Path | None = None
    keep_going: bool = False
    """Let the other ranks run on where one has failed."""
    pin: bool = True
    """Give each rank processors of its own, where there are enough."""
    timeout: float | None = None


@dataclass
class Rank:
    role: str
    index: int
    process: subprocess.Popen[bytes]
    outputs: tuple[threading.Thread, ...]
    stopped: bool = False
    """It was told to end."""

    @property
    def name(self) -> str:
        return "chief" if self.role == "chief" else f"{self.role} {self.index}"


def launch(request: Request) -> int:
    """Run all ranks to their end. Returns 0, or the exit code of the rank that failed first (128 + signal)."""
    ranks: list[Rank] = []
    if request.directory is not None:
        closing.forget_stopped(request.directory)
    with _signals_end():
        try:
            _start(request, ranks)
            return _wait(request, ranks)
        finally:
            _end(ranks, GRACE)
            for rank in ranks:
                for thread in rank.outputs:
                    thread.join(GRACE)


def tasks(workers: int, servers: int) -> list[tuple[str, int]]:
    """`[("worker", 0), ("worker", 1)]`, and with parameter servers a chief and those."""
    found = [("worker", index) for index in range(workers)]
    return [("chief", 0), *found, *(("ps", index) for index in range(servers))] if servers else found


def configurations(of: Sequence[tuple[str, int]], ports: Sequence[int]) -> list[str]:
    """TF_CONFIG for each rank."""
    cluster: dict[str, list[str]] = {}
    for (role, _), port in zip(of, ports, strict=True):
        cluster.setdefault(role, []).append(f"localhost:{port}")
    return [json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}) for role, index in of]


def processor_sets(available: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """The processors divided between the ranks, neighbours together; empty sets where there are too few."""
    each, more = divmod(len(available), count)
    if not each:
        return [()] * count
    sets, begin = [], 0
    for number in range(count):
        end = begin + each + (number < more)
        sets.append(tuple(available[begin:end]))
        begin = end
    return sets


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on at this moment, all different: they are held together, then let go."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _start(request: Request, ranks: list[Rank]) -> None:
    of = tasks(request.workers, request.servers)
    sets = processor_sets(sorted(os.sched_getaffinity(0)), len(of)) if request.pin else [()] * len(of)
    configs = configurations(of, free_ports(len(of)))
    for (role, index), config, processors in zip(of, configs, sets, strict=True):
        environment = {**os.environ, "TF_CONFIG": config, "PYTHONUNBUFFERED": "1"}
        if request.directory is not None:
            environment |= {place.DIRECTORY: str(request.directory), place.LAUNCHED: "1"}
        ranks.append(_start_rank(request.command, role, index, environment, processors))


def _start_rank(
    command: Sequence[str], role: str, index: int, environment: Mapping[str, str], processors: Sequence[int]
) -> Rank:
    try:
        process = subprocess.Popen(
            list(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that a rank is ended with all that it has started
        )
    except OSError as error:
        raise ProgramNotFound(f"{command[0]!r} cannot be started: {error.strerror}.") from None
    if processors:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, processors)
    rank = Rank(role, index, process, ())
    assert process.stdout is not None
    assert process.stderr is not None
    pairs = ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    rank.outputs = tuple(
        threading.Thread(target=pass_on, args=(source, target, f"[{rank.name}] ".encode()), daemon=True)
        for source, target in pairs
    )
    for thread in rank.outputs:
        thread.start()
    return rank


_LOCK = threading.Lock()


def pass_on(source: BinaryIO, target: BinaryIO, prefix: bytes) -> None:
    """Each line as one write, with the rank before it. Progress bars end their lines with a carriage return.

    Where nobody reads the lines any more (`| head`), the rank finds that out as it would without a launcher.
    """
    with contextlib.suppress(ValueError, OSError), source:
        for line in source:
            shown = line.rstrip(b"\n").rpartition(b"\r")[2] if b"\r" in line.rstrip(b"\r\n") else line.rstrip(b"\r\n")
            with _LOCK:
                target.write(prefix + shown + b"\n")
                target.flush()


def _wait(request: Request, ranks: list[Rank]) -> int:
    """Until all have ended. The first failure ends the others; so does the end of a coordinator."""
    until = time.monotonic() + request.timeout if request.timeout else None
    failed = 0
    while any(rank.process.poll() is None for rank in ranks):
        over = False
        for rank in ranks:
            code = rank.process.poll()
            if code is None or rank.stopped:
                continue
            if code and not failed:
                failed = code if code > 0 else 128 - code
                over = not request.keep_going
                rest = "" if request.keep_going else "; the other ranks are ended"
                _say(f"{rank.name} {_how(code)}{rest}")
            over = over or (rank.role == "chief" and not code)  # servers and their workers wait for ever
        if until is not None and time.monotonic() > until:
            _say(f"the job has run for {request.timeout:.0f} s; all ranks are ended")
            failed, over = failed or 124, True
        if over:
            if request.directory is not None:
                closing.say_stopped(request.directory)
            _end(ranks, GRACE)
            return failed
        time.sleep(POLL)
    codes = [rank.process.returncode for rank in ranks if not rank.stopped]
    return failed or next((code if code > 0 else 128 - code for code in codes if code), 0)


def _end(ranks: Sequence[Rank], grace: float) -> None:
    """Tell all that still run to end; what does not is killed, with all that it has started."""
    for rank in ranks:
        if rank.process.poll() is None and not rank.stopped:
            rank.stopped = True
            _signal(rank, signal.SIGTERM)
    until = time.monotonic() + grace
    while time.monotonic() < until and any(rank.process.poll() is None for rank in ranks):
        time.sleep(POLL)
    for rank in ranks:
        _signal(rank, signal.SIGKILL)  # also what a rank has left behind
        rank.process.wait()


def _signal(rank: Rank, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(rank.process.pid, number)


@contextlib.contextmanager
def _signals_end() -> Iterator[None]:
    """Ctrl-C and `kill` end the ranks, which are in sessions of their own, and then this process."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    kept = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _how(code: int) -> str:
    if code > 0:
        return f"failed with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _say(text: str) -> None:
    with _LOCK:
        sys.stderr.write(f"flatout: {text}\n")
        sys.stderr.flush()
