"""The end of a job: who waits for the others, who merges, and where the case of the job is kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

from flatout import store
from flatout.job.directory import Member
from flatout.job.merge import Job, diagnosed, look
from flatout.model import ranks
from flatout.model.case import Case
from flatout.store import saving

WAITS = 60.0
"""Seconds that the first rank waits for the others, once it has ended itself."""
STOPPED = "stopped"
"""A file of the directory: the launcher has begun to end the ranks, as the job was over."""


def close(member: Member, waits: float = WAITS) -> Case | None:
    """The case of the job, where it falls to this rank to make it.

    Whoever ends last makes it. The first of the ranks that are there waits for the others, and makes it of what there
    is where they do not come; a rank that ends later makes it again.
    """
    until = time.monotonic() + waits
    while True:
        job = look(member.directory)
        if job.is_over:
            return diagnosed(job) if _claim(member.directory, job) else None
        there = [host.name for host in job.hosts if host.state not in ("lost", "missing")]
        if there and there[0] != member.place.name:
            return None
        if time.monotonic() > until:
            return diagnosed(job)
        time.sleep(min(0.5 + 0.002 * len(job.hosts), 5.0))


def keep(case: Case, directory: Path, title: str) -> Path:
    """Keep the case of the job in its directory and among the kept cases; returns the latter's directory."""
    home = Path.cwd() / store.HOME
    if directory.parent.parent.absolute() == home.absolute():
        kept = directory
    else:
        store.write_case(case, directory)
        kept = store.new_directory(f"{title}-job")
    leader = ranks.leader(case.hosts)
    if case.logdir is not None and leader.case:
        traced = Path(leader.case) / case.logdir
        case = replace(case, logdir=os.path.relpath(traced, kept) if traced.exists() else None)
    saving.save(case, kept)
    return kept


def say_stopped(directory: Path) -> None:
    with contextlib.suppress(OSError):
        (directory / STOPPED).touch()


def forget_stopped(directory: Path) -> None:
    """Of an earlier job in the same directory: a rank that is killed in this one was not told to end."""
    with contextlib.suppress(OSError):
        (directory / STOPPED).unlink(missing_ok=True)


def was_stopped(directory: Path) -> bool:
    return (directory / STOPPED).exists()


def _claim(directory: Path, job: Job) -> bool:
    """Whether this rank is the first to see this job over."""
    names = repr(sorted((host.name, round(host.began, 3)) for host in job.hosts))
    path = directory / f"merged-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
