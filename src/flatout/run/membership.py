"""A run that is one rank of a job: it comes, reports while it runs, leaves its case, and the last one merges them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from flatout.job import closing, directory, place, summary
from flatout.job.directory import Member
from flatout.model.case import Case, Host
from flatout.model.errors import FlatoutError, InvalidOption
from flatout.model.evidence.job import RankOf
from flatout.report import standard_error
from flatout.run.request import RunRequest
from flatout.trial.launcher import Ended

Run = Callable[[], tuple[Ended, Case | None]]


def find(given: str | None) -> Member | None:
    """This process as a rank; None where it is a program of one process, or its ranks have nowhere to meet."""
    found = place.find(os.environ)
    if found is None:
        if given is not None:
            raise InvalidOption(
                "--job is for a program of several processes, and nothing here says which of them this one is. "
                "TF_CONFIG is looked for, and what Slurm, MPI and Ray set; `flatout launch -n 2 -- flatout run "
                "PROGRAM` sets TF_CONFIG."
            )
        return None
    meeting = Path(given) if given is not None else directory.default_directory(found)
    if meeting is None:
        sys.stderr.write(
            f"flatout: this is {found.name} of a job of {found.size}. Give all ranks --job DIR, a directory that they "
            "share, to see them as one.\n"
        )
        return None
    member = Member(found, meeting.absolute())
    member.join()
    return member


def is_rank() -> bool:
    return place.find(os.environ) is not None


def evidence() -> list[RankOf]:
    """Which rank this process is, for its own case."""
    found = place.find(os.environ)
    if found is None:
        return []
    coordinates = found.role == "chief" and any(name.startswith("ps ") for name in found.expected)
    return [RankOf(found.name, found.size, found.by, coordinates, source=found.by)]


def run(member: Member, request: RunRequest, run_rank: Run) -> tuple[Ended, Case | None]:
    """Run the rank; the case is that of the job where this rank is the one that merges, else its own."""
    with member.reporting(), _patient():
        ended, case = run_rank()
        member.leave(_summary(member, ended, case))
    if os.environ.get(place.LAUNCHED):
        return ended, case  # `flatout launch` waits for all and merges
    try:
        merged = closing.close(member)
        if merged is None:
            return ended, case
        kept = closing.keep(merged, member.directory, Path(request.program).stem)
        if not request.silent:
            standard_error.show(merged, request.view, kept, request.json, request.quiet)
        return ended, merged
    except (FlatoutError, OSError) as error:
        sys.stderr.write(f"flatout: the ranks of this job could not be put together: {error}\n")
        return ended, case


@contextlib.contextmanager
def _patient() -> Iterator[None]:
    """Where the launcher ends the ranks, the program is to end, and not the analysis of what it has left.

    A handler, as the program would inherit that a signal is ignored.
    """
    if not os.environ.get(place.LAUNCHED) or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _summary(member: Member, ended: Ended, case: Case | None) -> Host:
    stopped = closing.was_stopped(member.directory)
    if case is not None:
        return summary.of(case, member.place, member.folder, stopped)
    state = "ended" if not ended.returncode else "killed" if ended.returncode < 0 else "failed"
    found = Host(member.place.name, role=member.place.role, index=member.place.index, seconds=ended.seconds)
    return replace(found, state=state, note="its recording could not be analysed")  # type: ignore[arg-type]
