"""A rank's case becomes what the job needs to know of it: some kilobytes, however long the rank has run."""

from __future__ import annotations

import socket
from pathlib import Path

from flatout.job.place import Place
from flatout.model import queries
from flatout.model.case import Case, Host, RankWork, RunPart
from flatout.model.evidence.job import Collectives, RankInput
from flatout.model.evidence.program import CpuUse, LastSeen
from flatout.model.vocabulary import RankState

MOST_WORK = 12
MOST_FINDINGS = 5
MOST_INPUTS = 6
BESIDE = ("validation", "prediction", "callback", "checkpoint", "summary")
"""Parts of a run that every rank may do, though one would be enough."""


def of(case: Case, place: Place, directory: Path | None, stopped: bool = False) -> Host:
    """`stopped`: the launcher has ended it, as the job was over."""
    used = queries.cpu_use(case)
    last = next(iter(case.evidence_of(LastSeen)), None)
    steps = case.steps
    return Host(
        name=place.name,
        role=place.role,
        index=place.index,
        machine=socket.gethostname(),
        state=_state(case, stopped),
        note=_note(case, last),
        seconds=case.program.seconds,
        without_step_seconds=last.without_step if last is not None and steps is not None else 0.0,
        steps=steps.count if steps is not None else 0,
        step_ms=steps.ms.median if steps is not None else None,
        split_ms=steps.split_ms if steps is not None else None,
        collectives=_collectives(case),
        inputs=case.evidence_of(RankInput)[:MOST_INPUTS],
        work=_work(case),
        cores_used=used.used if used is not None else None,
        cores=used.cores if used is not None else None,
        taken=_taken(used),
        findings=tuple(
            (item.cause, round(item.cost_share, 4), _spot(case, item.where))
            for item in case.findings[:MOST_FINDINGS]
            if item.cost_share
        ),
        case=str(directory) if directory is not None else "",
    )


def _collectives(case: Case) -> Collectives | None:
    """Those of the training steps: what was traced may be another loop than the steps that are reported."""
    found = next(iter(case.evidence_of(Collectives)), None)
    return found if case.steps is not None and case.steps.kind == "train" else None


def _taken(used: CpuUse | None) -> float | None:
    if used is None or used.idle is None or not used.cores:
        return None
    return round(min(max(1 - (used.used + used.idle) / used.cores, 0.0), 1.0), 3)


def _state(case: Case, stopped: bool) -> RankState:
    if case.program.signal:
        return "stopped" if stopped else "killed"
    if case.program.exit_code:
        return "stopped" if stopped else "failed"
    return "ended"


def _note(case: Case, last: LastSeen | None) -> str:
    """How it ended, and where it was then."""
    program = case.program
    parts = []
    if program.signal:
        parts.append(f"ended by {program.signal}")
    elif program.exit_code:
        parts.append(f"exit code {program.exit_code}")
    if program.error:
        parts.append(" ".join(program.error.split())[:160])
    elif (program.signal or program.exit_code) and last is not None and last.where is not None:
        place = "inside of a call of TensorFlow at" if last.in_call else "at"
        parts.append(f"{place} {_spot(case, last.where)}")
    return ", ".join(parts)


def _work(case: Case) -> tuple[RankWork, ...]:
    found: list[RunPart] = []
    for part in case.run.parts if case.run is not None else ():
        found += [part] if part.kind in BESIDE else [one for one in part.parts if one.kind in BESIDE]
    found.sort(key=lambda part: -part.seconds)
    return tuple(
        RankWork(part.kind, part.name, round(part.seconds, 3), part.count, part.where) for part in found[:MOST_WORK]
    )


def _spot(case: Case, where: object) -> str:
    file, line = getattr(where, "file", None), getattr(where, "line", None)
    if not file:
        return ""
    path = Path(file)
    root = Path(case.program.directory or "/")
    short = path.relative_to(root) if path.is_relative_to(root) and str(root) != "/" else path.name
    return f"{short}:{line}" if line else str(short)
