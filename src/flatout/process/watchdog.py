"""Makes sure that no child outlives flatout, however flatout ends.

A tiny process reads process groups from a pipe (`+123`, `-123`). When the pipe closes, because flatout has finished,
crashed or was killed, it kills every group that is left: the children and all that they started.
`Watchdog` runs this file as a script, so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


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

    def watch(self, group: int) -> None:
        """Kill this process group once flatout is gone."""
        self._write(f"+{group}\n")

    def forget(self, group: int) -> None:
        """This group has ended; its number may be another's soon."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        os.close(self._writing)
        self._process.wait(timeout=10)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writing, text.encode("ascii"))


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_group(group: int) -> None:
    signal_group(group, signal.SIGKILL)


def _main(descriptor: int) -> None:
    groups: set[int] = set()
    with os.fdopen(descriptor, "r", encoding="ascii") as stream:
        for line in stream:
            group = int(line[1:])
            groups.add(group) if line[0] == "+" else groups.discard(group)
    for group in groups:
        kill_group(group)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
