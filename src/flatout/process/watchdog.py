"""Makes sure that no child outlives flatout, however flatout ends.

A tiny process reads process trees from a pipe (`+123 456`, `-123`: a process group, and the mark of those processes
that have left it). When the pipe closes, because flatout has finished, crashed or was killed, it kills every tree that
is left: the children and all that they started. `+123 456 /tmp/flatout-1a2b` names a link that goes with the tree.
`Watchdog` runs this file as a script, so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

MARKED = b"Max file locks"
"""The line of /proc/PID/limits with the mark of a process (`fence/main.py` sets it)."""
KILL_SECONDS = 5.0
CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class Tree:
    """A child and all that it has started: its process group, and those that have left the group, known by their
    mark."""

    group: int
    mark: int = 0
    """0: they carry none."""

    def signal(self, number: signal.Signals) -> None:
        signal_group(self.group, number)
        for pid in self.strays():
            _signal(pid, number)

    def strays(self) -> list[int]:
        """Those that are not in its group: daemons, mostly."""
        return [pid for pid in marked(self.mark) if _group(pid) not in (self.group, None)] if self.mark else []

    def kill(self) -> None:
        """All of it, those included that are started meanwhile."""
        kill_group(self.group)
        deadline = time.monotonic() + KILL_SECONDS
        while self.mark and (left := [pid for pid in marked(self.mark) if not is_over(pid)]):
            for number in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts no other
                for pid in left:
                    _signal(pid, number)
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)


class Watchdog:
    """The parent's side: the watchdog process and the pipe to it."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        os.set_inheritable(self._writing, False)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(reading)],
            pass_fds=(reading,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal must not end it before the children
        )
        os.close(reading)

    def watch(self, group: int, mark: int = 0, link: str = "") -> None:
        """Kill this process tree once flatout is gone, and remove this link."""
        self._write(f"+{group} {mark} {link}\n")

    def forget(self, group: int) -> None:
        """This group has ended; its number may be another's soon."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """It goes on by itself where a process takes long to die: what was found is not to wait for that."""
        os.close(self._writing)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=CLOSE_SECONDS)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writing, text.encode("ascii"))


def marked(mark: int) -> list[int]:
    """The processes with this mark."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and _mark(name) == mark:
                found.append(int(name))
    return found


def _mark(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/limits", "rb") as stream:
            value = stream.read().partition(MARKED)[2].split(None, 1)[0]
        return int(value) if value.isdigit() else 0
    except (OSError, IndexError):
        return 0


def is_over(pid: int) -> bool:
    """Whether a process has ended. In a container its new parent may never ask for its end: it stays as a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b") ")[2][:1] in b"ZX"
    except OSError:
        return True


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_group(group: int) -> None:
    signal_group(group, signal.SIGKILL)


def _main(descriptor: int) -> None:
    trees: dict[int, tuple[Tree, list[str]]] = {}
    with os.fdopen(descriptor, "r", encoding="ascii") as stream:
        for line in stream:
            group, *rest = line[1:].split()
            if line[0] == "+":
                trees[int(group)] = Tree(int(group), int(rest[0])), rest[1:]
            else:
                trees.pop(int(group), None)
    for tree, links in trees.values():
        tree.kill()
        for link in links:
            with contextlib.suppress(OSError):
                os.unlink(link)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
