"""How much memory a process holds, and has held at most."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_inherited_bytes = 0


def inherit_memory() -> None:
    """Called right after a fork: count the parent's memory that this process shares as its own.

    A process that had done the imports itself would hold it.
    """
    global _inherited_bytes
    _inherited_bytes = max(0, resident_bytes(os.getppid()) - resident_bytes(os.getpid()))


def peak_bytes() -> int:
    """The most memory that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + _inherited_bytes


def forget_peak() -> None:
    """Begin the peak anew, from what is held now; does nothing where the system has no way to."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def resident_bytes(pid: int) -> int:
    """What a process holds now; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
