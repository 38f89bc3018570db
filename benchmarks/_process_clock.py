"""How long a process that somebody else starts lives, by the kernel's own account of it.

`flatout run` says how long its program ran. To hold it to that, the time is taken here without flatout: the program is
found among the children of `flatout`, its start is what the kernel has noted, its end is when its pidfd says so.
"""

from __future__ import annotations

import os
import select
import threading
import time
from pathlib import Path

LOOK_SECONDS = 0.002


class ProcessClock:
    """Watches the children of a process for the first whose command names a file. Linux only."""

    def __init__(self, parent: int, program: str) -> None:
        self.parent = parent
        self.program = os.fsencode(program)
        self.seconds: float | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def join(self) -> float | None:
        """Seconds from its start to its end; None where no such process was seen."""
        self._thread.join()
        return self.seconds

    def _is_it(self, pid: int) -> bool:
        """Between its fork and its exec a child has the command of its parent."""
        command = _command(pid)
        return self.program in command and command != _command(self.parent)

    def _watch(self) -> None:
        child = None
        while child is None and Path(f"/proc/{self.parent}").exists():
            child = next((pid for pid in _children(self.parent) if self._is_it(pid)), None)
            if child is None:
                time.sleep(LOOK_SECONDS)
        if child is None:
            return
        try:
            handle, began = os.pidfd_open(child), _began(child)
        except OSError:
            return
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()
        self.seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        os.close(handle)


def _children(parent: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{parent}/task")
        return [
            int(word) for one in threads for word in Path(f"/proc/{parent}/task/{one}/children").read_text().split()
        ]
    except OSError:
        return []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _began(pid: int) -> float:
    """Seconds after boot, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
