"""How much memory a process holds, and has held at most."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_inherited_bytes = 0


def inherit_memory() -> None:
    """Called right after a fork: what the parent holds and this process does not touch counts as its own.

    It would hold it, had it imported TensorFlow itself.
    """
    global _inherited_bytes
    _inherited_bytes = max(0, resident_bytes(os.getppid()) - resident_bytes(os.getpid()))


def peak_bytes() -> int:
    """The most memory that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + _inherited_bytes


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
