"""Workers that need TensorFlow, in a fraction of the time: forked from a process that has imported it and no more.

The parent's side is that of `tune`'s nurseries; what is forked here is a worker. Where none can be had (threads in the
way, a system without process descriptors), a worker is started as a program of its own.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from flatout.process.warden import Warden
from flatout.trial import nursery
from flatout.trial.nursery import Forked, Gone

__all__ = ["Forked", "Gone", "Nursery", "opened"]


class Nursery(nursery.Nursery):
    def __init__(self, warden: Warden, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "flatout.optimize.work.nursery_main"]
        super().__init__(command, {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}, log, warden)
        self._lock = threading.RLock()

    def worker(self, log: Path, descriptors: Sequence[int]) -> Forked:
        """Fork one that writes to this log and is asked over these descriptors."""
        place = log.with_suffix(".request")
        place.mkdir(parents=True, exist_ok=True)
        with self._lock:  # workers are started from several threads
            return self.start({"output": str(log.resolve())}, place, descriptors)

    def code_of(self, pid: int) -> int | None:
        with self._lock:
            return super().code_of(pid)


def opened(warden: Warden, log: Path) -> Nursery | None:
    if not hasattr(os, "pidfd_open") or not hasattr(socket, "send_fds"):
        return None
    try:
        os.close(os.pidfd_open(os.getpid()))
        made = Nursery(warden, log)
    except OSError:
        return None
    made.prepare(["tensorflow", "keras"])
    return made
