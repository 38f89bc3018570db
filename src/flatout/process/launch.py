"""Starts a child in a process group of its own, with its output in a file."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.process.watchdog import Tree, Watchdog

TICK_SECONDS = 0.5
KILLED_SECONDS = 10.0


@dataclass(frozen=True)
class Command:
    """A program that is ready to be started."""

    words: Sequence[str]
    environment: Mapping[str, str]
    mark: int = 0
    """By which its processes are known, wherever they go; 0: by their group alone."""
    link: str = ""
    """To its temporary directory, where that has a long path: removed once flatout is gone."""


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    *,
    append: bool = False,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start it without input. `descriptors` stay open in it, under the same numbers.

    A group of its own: Ctrl-C in the terminal does not reach it, and `kill_group` ends all that it has started.
    """
    with open(output, "ab" if append else "wb") as stream:
        return subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(descriptors),
            start_new_session=True,
        )


def run_until(
    command: Command,
    output: Path,
    watchdog: Watchdog,
    latest: float,
    tick: Callable[[], None] = lambda: None,
) -> int | None:
    """Run a program to its end, or until `latest` (monotonic). Returns its code; None where it was stopped."""
    process = start(command.words, command.environment, output)
    tree = Tree(process.pid, command.mark)
    watchdog.watch(tree.group, tree.mark, command.link)
    try:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=TICK_SECONDS)
            tick()
            if process.poll() is None and time.monotonic() > latest:
                return None
        return process.returncode
    finally:
        tree.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # in the midst of a system call that does not end
            process.wait(timeout=KILLED_SECONDS)
        watchdog.forget(process.pid)
