"""What a comparison needs of a case. The history keeps runs in this form, so they remain when a case is deleted."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure import pace
from flatout.measure.processors import others_in
from flatout.measure.steady import error_of_median, steady_indices
from flatout.model.case import Case
from flatout.model.evidence.program import Injected
from flatout.store.environment_facts import facts_of

RUN_NUMBERS = ("whole run", "until the first step", "each epoch", "outside of steps")
"""Of the run, not of the step."""
PARTS = ("input", "trace", "python", "compute", "copy", "idle")


@dataclass(frozen=True)
class Run:
    name: str
    kind: str
    program: str
    """The program's file relative to its repository or its directory, `-m module`, or a command."""
    arguments: tuple[str, ...] = ()
    levers: tuple[str, ...] = ()
    started: str = ""
    commit: str = ""
    changes: str = ""
    """Checksum of the uncommitted changes; empty for a clean checkout."""
    branch: str = ""
    sha256: str = ""
    steps: int = 0
    found_by: str = ""
    median_ms: float = 0.0
    p10_ms: float = 0.0
    p90_ms: float = 0.0
    error: float | None = None
    """Standard error of the logarithm of the median, from the steps of this run alone, corrected for the machine's
    speed."""
    parts_ms: dict[str, float] = field(default_factory=dict)
    part_errors: dict[str, float] = field(default_factory=dict)
    """Standard error of each part in milliseconds, where there is a trace."""
    others: float | None = None
    """Share of the cores that other programs used during the run."""
    pace_us: float | None = None
    """Microseconds that a fixed piece of work took during the run: the speed of the machine. None if not measured."""
    pace_by: str = ""
    follows: float = 0.0
    """By how much the logarithm of the step grows with that of the work, and the standard error of that."""
    follows_error: float = 0.0
    uneven: float = 0.0
    """Standard deviation of the logarithm of the machine's speed from second to second."""
    facts: dict[str, str] = field(default_factory=dict)
    """Facts of the environment by name."""
    failed: str = ""
    run_ms: dict[str, float] = field(default_factory=dict)
    """`RUN_NUMBERS` as far as they are known: of a program that was seen from its start to its end."""

    @property
    def state(self) -> tuple[str, ...]:
        """Identifies the source. Runs of the same state are repeats of each other."""
        return (self.commit, self.changes) if self.commit else (self.sha256, "")

    @property
    def title(self) -> str:
        return " ".join((self.program, *self.arguments))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_from(data: Mapping[str, Any]) -> Run:
    """Unknown names are ignored, so that an older flatout can read a newer row."""
    known = {item.name for item in fields(Run)}
    values = {key: value for key, value in data.items() if key in known}
    for name in ("arguments", "levers"):
        values[name] = tuple(values.get(name) or ())
    return Run(**values)


def run_of(case: Case, name: str) -> Run:
    """Also for a case without steps: the comparison decides whether it can be compared."""
    source = case.environment.get("source")
    source = source if isinstance(source, dict) else {}
    steps = case.steps
    steady = steady_indices(steps) if steps is not None else np.zeros(0, np.int64)
    times = np.asarray(steps.times_ms, dtype=np.float64)[steady] if steps is not None else np.zeros(0)
    found, even = pace.read(case, steady, times)
    split = steps.split_ms if steps is not None else None
    program, arguments = program_of(case.program.command, case.program.directory, str(source.get("root") or ""))
    return Run(
        name=name,
        kind=case.kind,
        program=program or name,
        arguments=arguments,
        levers=tuple(item.lever for item in case.evidence_of(Injected)),
        started=case.program.started,
        commit=str(source.get("commit") or ""),
        changes=str(source.get("changes") or ""),
        branch=str(source.get("branch") or ""),
        sha256=str(source.get("sha256") or ""),
        steps=steps.count if steps is not None else 0,
        found_by=steps.found_by if steps is not None else "",
        median_ms=_median(times, steps.ms.median if steps is not None else 0.0),
        p10_ms=_finite(steps.ms.p10) if steps is not None else 0.0,
        p90_ms=_finite(steps.ms.p90) if steps is not None else 0.0,
        error=error_of_median(even),
        parts_ms={part: _finite(getattr(split, part)) for part in PARTS} if split is not None else {},
        others=others_in(case.evidence),
        pace_us=found.micros if found else None,
        pace_by=found.by if found else "",
        follows=found.follows if found else 0.0,
        follows_error=found.error if found else 0.0,
        uneven=found.uneven if found else 0.0,
        facts=facts_of(case.environment),
        failed=case.program.error or case.program.signal or "",
        run_ms=run_numbers(case),
    )


def run_numbers(case: Case) -> dict[str, float]:
    """Milliseconds by the names of `RUN_NUMBERS`; empty for a program whose end was not seen."""
    tree = case.run
    if tree is None or not tree.complete or case.program.exit_code is None:
        return {}
    steps = tree.seconds_of("steps")
    found = {"whole run": tree.seconds, "until the first step": tree.first_step or 0.0}
    if tree.epochs > 1 and tree.first_step is not None:
        found["each epoch"] = (tree.seconds - tree.first_step - tree.seconds_of("exit")) / tree.epochs
    if steps:
        found["outside of steps"] = tree.seconds - steps
    return {name: 1000 * _finite(found[name]) for name in RUN_NUMBERS if _finite(found.get(name, 0.0)) > 0}


def program_of(command: Sequence[str], directory: str, root: str = "") -> tuple[str, tuple[str, ...]]:
    """The program and its arguments, without the interpreter and the location of the checkout."""
    words = tuple(command)
    if words and os.path.basename(words[0]).startswith("python"):
        words = words[1:]
    if not words:
        return "", ()
    if words[0] == "-m":
        return " ".join(words[:2]), words[2:]
    file = os.path.normpath(os.path.join(directory, words[0]))
    for base in filter(None, (root, directory)):
        if file.startswith(base.rstrip("/") + "/"):
            return file[len(base.rstrip("/")) + 1 :], words[1:]
    return os.path.normpath(words[0]), words[1:]


def program_file(case: Case) -> Path | None:
    """The file that was run, if it was a file."""
    command = case.program.command
    words = command[1:] if command and os.path.basename(command[0]).startswith("python") else command
    if not words or words[0].startswith("-"):
        return None
    return Path(case.program.directory) / words[0]


def _median(times: Any, otherwise: float) -> float:
    return float(np.median(times)) if len(times) else _finite(otherwise)


def _finite(value: Any) -> float:
    """Zero for anything but a finite number: a file may hold anything."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0
