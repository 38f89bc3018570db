"""Processors of a machine that one race has for itself, where several races of a cluster run on it.

Each processor has a file, and who has locked it has the processor. The kernel lets go of the lock when its process
ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from pathlib import Path
from typing import IO

WAIT_SECONDS = 60.0
"""For others to let go of theirs. After that a race runs where it may, beside them."""


def reserve(count: int, directory: Path | None = None, wait: float = WAIT_SECONDS) -> list[IO[bytes]]:
    """Keep this process, and all that it starts, on so many processors that no other race has. They are its own for as
    long as the files that are returned stay open. None where it needs all there are, or where none are free."""
    usable = sorted(os.sched_getaffinity(0))
    directory = directory or Path(f"/tmp/flatout-cores-{os.getuid()}")  # the same for all, whatever their TMPDIR
    if len(usable) <= count or not _is_ours(directory):
        return []
    deadline = time.monotonic() + wait
    while len(held := _locked(usable, count, directory)) < count:
        for stream in held.values():  # two that wait for each other with half of what they need would wait for ever
            stream.close()
        if time.monotonic() > deadline:
            return []
        time.sleep(random.uniform(0.1, 0.5))
    os.sched_setaffinity(0, held)
    return list(held.values())


def _is_ours(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory.lstat().st_uid == os.getuid() and not directory.is_symlink()
    except OSError:
        return False


def _locked(usable: list[int], count: int, directory: Path) -> dict[int, IO[bytes]]:
    """The first that are free, with their files."""
    held: dict[int, IO[bytes]] = {}
    for number in usable:
        if len(held) == count:
            break
        stream = open(directory / str(number), "ab")  # noqa: SIM115  # it stays open
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.close()
        else:
            held[number] = stream
    return held
