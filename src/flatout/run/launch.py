"""`flatout launch` from beginning to end: start the ranks, wait for them, put their cases together, print that."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from flatout import store
from flatout.job import closing, directory, launching, merge
from flatout.model.errors import FlatoutError
from flatout.report import standard_error
from flatout.store import permissions


@dataclass(frozen=True)
class LaunchRequest:
    command: tuple[str, ...]
    workers: int = 2
    servers: int = 0
    job: str | None = None
    """The directory in which the ranks meet; None: a new one below `.flatout/jobs`."""
    keep_going: bool = False
    pin: bool = True
    timeout: float | None = None
    json: str | None = None
    view: str = "overview"
    quiet: bool = False


def launch(request: LaunchRequest) -> int:
    """Returns the exit code: that of the rank that failed first, or 0."""
    title = _title(request.command)
    meeting = Path(request.job).absolute() if request.job is not None else _new_directory(title)
    started = launching.Request(
        request.command,
        request.workers,
        request.servers,
        meeting,
        request.keep_going,
        request.pin,
        request.timeout,
    )
    try:
        return launching.launch(started)
    finally:
        _show(request, meeting, title)


def _show(request: LaunchRequest, meeting: Path, title: str) -> None:
    """The case of the job, where its ranks were observed; what cannot be shown does not change how the job ended."""
    if next(directory.entries(meeting), None) is None:
        if request.job is None:
            _remove_empty(meeting)
        return
    try:
        case = merge.merge(meeting)
        kept = closing.keep(case, meeting, title)
        standard_error.show(case, request.view, kept, request.json, request.quiet)
    except (FlatoutError, OSError) as error:
        sys.stderr.write(f"flatout: the ranks of this job could not be put together: {error}\n")


def _new_directory(title: str) -> Path:
    """`.flatout/jobs/train-20260102-030405`"""
    made = store.new_directory(f"{title}-job")  # a name that is free, and the file that keeps it out of a repository
    meeting = made.parent.parent / "jobs" / made.name
    permissions.make_private(meeting)
    for left in made.iterdir():
        left.unlink()
    made.rmdir()
    return meeting


def _remove_empty(meeting: Path) -> None:
    try:
        for left in meeting.iterdir():
            left.unlink()
        meeting.rmdir()
    except OSError:
        pass  # it is nearly empty, and in a directory of flatout's own


def _title(command: tuple[str, ...]) -> str:
    """The program's name: the first word that looks like one."""
    for word in command:
        if word.endswith(".py"):
            return Path(word).stem
    return Path(command[-1]).stem or "program"
