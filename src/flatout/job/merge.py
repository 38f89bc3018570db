"""What all ranks have written becomes one Case: one host entry for each, the causes of a job, one verdict.

Only the summaries are held in memory, and the whole case of one rank, which leads: it makes the steps that are counted.
The cases of the others stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from flatout import store
from flatout.job import directory as meeting
from flatout.model import ranks
from flatout.model.case import Case, Host, Note, Program
from flatout.model.errors import CaseNotFound, FlatoutError
from flatout.model.version import __version__

MOST_NOTES = 6


@dataclass(frozen=True)
class Job:
    """All that is known of a job at one moment."""

    hosts: tuple[Host, ...]
    size: int

    @property
    def is_over(self) -> bool:
        """Every rank has come, and each has ended or is gone."""
        states = {host.state for host in self.hosts}
        return len(self.hosts) >= self.size and not states & {"running", "missing"}


def look(directory: Path) -> Job:
    """Who has come, who is still there, who is not."""
    found = meeting.of_latest_job(list(meeting.entries(directory)))
    size = max((entry.size for entry in found), default=0)
    hosts = [replace(entry.host, state="lost") if entry.is_lost else entry.host for entry in found]
    come = {host.name for host in hosts}
    expected = next((entry.expected for entry in found if len(entry.expected) == size), ())
    hosts += [_missing(name) for name in expected if name not in come]
    return Job(tuple(sorted(hosts, key=ranks.order)), size)


def merge(directory: Path) -> Case:
    """The case of the job. Raises CaseNotFound where no rank has come."""
    job = look(directory)
    if not job.hosts:
        raise CaseNotFound(
            f"No rank of a job has written into {directory}. Start each rank with `flatout run --job {directory} "
            "PROGRAM`, or all of them with `flatout launch`."
        )
    return diagnosed(job)


def diagnosed(job: Job) -> Case:
    from flatout.causes import diagnose
    from flatout.cures import name_offered

    leader = ranks.leader(job.hosts)
    base, trouble = _case_of(leader)
    case = replace(
        base,
        kind="run",
        hosts=job.hosts,
        findings=(),
        verdict="",
        notes=(*trouble, *_notes(job, leader), *base.notes),
    )
    case = name_offered(diagnose(case))
    return replace(case, verdict=" ".join((ranks.sentence(case.hosts), case.verdict)))


def _case_of(leader: Host) -> tuple[Case, tuple[Note, ...]]:
    """The leader's own case; where it is on another machine or gone, what its summary says."""
    try:
        if leader.case:
            return store.load(store.locate(leader.case)), ()
        trouble = f"{leader.name} has left no case"
    except (FlatoutError, OSError) as error:
        trouble = f"The case of {leader.name} cannot be read here: {error}"
    program = Program(seconds=leader.seconds)
    todo = "What the job shows is below; its steps in detail are not."
    return Case("run", program=program, flatout=__version__), (Note("warning", _begun(f"{trouble}."), todo),)


def _notes(job: Job, leader: Host) -> list[Note]:
    notes = []
    missing = [host.name for host in job.hosts if host.state == "missing"]
    if missing:
        notes.append(
            Note(
                "error",
                _begun(f"{ranks.named(missing)} never came to the directory of the job."),
                "Where a rank runs on a machine that does not share the working directory, give all ranks "
                "--job with a directory that they share.",
            )
        )
    known = {(cause, place) for cause, _, place in leader.findings}
    for host in job.hosts:
        for cause, share, place in host.findings[:1] if host is not leader else ():
            if (cause, place) not in known and share >= 0.1 and len(notes) < MOST_NOTES:
                known.add((cause, place))
                spot = f" at {place}" if place else ""
                notes.append(Note("info", _begun(f"{host.name} by itself: {cause}{spot}, {share:.0%} of its step.")))
    return notes


def _begun(sentence: str) -> str:
    """Names of ranks begin in lower case."""
    return sentence[:1].upper() + sentence[1:]


def _missing(name: str) -> Host:
    role, _, index = name.rpartition(" ")
    return Host(name, role=role or index, index=int(index) if index.isdecimal() else 0, state="missing")
