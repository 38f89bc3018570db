"""Starts the processes that do the tasks of `tasks.py`."""

from __future__ import annotations

import os
from pathlib import Path

from flatout.process.fork_server import ForkServer, can_fork
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, worker_server

TEMPORARY = "tmp"
TASKS = "flatout.optimize.work.tasks:Tasks"


def start_worker(log: Path, watchdog: Watchdog, server: ForkServer | None = None) -> Worker:
    """A worker process for the tasks of `Tasks`."""
    return Worker(TASKS, log, watchdog, server, _environment(log))


def open_fork_server(watchdog: Watchdog, log: Path) -> ForkServer | None:
    """For workers that need TensorFlow; None where this system cannot fork them."""
    if not can_fork():
        return None
    try:
        return worker_server(watchdog, log, _environment(log), (TASKS.partition(":")[0], "tensorflow", "keras"))
    except OSError:
        return None


def _environment(log: Path) -> dict[str, str]:
    """Temporary files go beside the log: TensorFlow removes its own when a process ends, and workers are killed."""
    temporary = log.parent / TEMPORARY
    temporary.mkdir(parents=True, exist_ok=True)
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "TMPDIR": str(temporary.absolute())}
