"""Runs a program bare and under `flatout run`, and reads the case that was kept."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from flatout import store
from flatout.measure.processors import STARVED, others_in
from flatout.model.case import Case

Seen = TypeVar("Seen")

FLATOUT = [sys.executable, "-m", "flatout"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    returncode: int
    stdout: bytes
    stderr: str


def write(directory: Path, source: str, name: str = "program.py") -> Path:
    path = directory / name
    path.write_text(textwrap.dedent(source))
    return path


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLATOUT", "PYTHONPATH"))}
    if "FLATOUT_CONVERSIONS" in os.environ:  # those of the tests, not the user's own
        kept["FLATOUT_CONVERSIONS"] = os.environ["FLATOUT_CONVERSIONS"]
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1", **changes}


def execute(command: list[Any], cwd: Path, **options: Any) -> Outcome:
    options.setdefault("env", environment())
    options.setdefault("input", b"")
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, timeout=400, **options)
    return Outcome(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def bare(cwd: Path, *command: Any, **options: Any) -> Outcome:
    return execute([sys.executable, *command], cwd, **options)


def observed(cwd: Path, *command: Any, **options: Any) -> Outcome:
    return execute([*FLATOUT, "run", *command], cwd, **options)


OWN_FAULTS = (
    "after the window: ",
    "at the end: ",
    "a counter could not be written: ",
    "a trace could not be described: ",
    "a distributed dataset could not be described: ",
    "the sampler of the run stopped: ",
    "the sampler stopped: ",
)
"""How notes begin that tell of an exception in flatout's own code, which is caught so that the program goes on."""


def case_in(directory: Path) -> Case:
    case = store.load(store.locate(None, directory / store.HOME))
    faults = [note.text for note in case.notes if note.text.startswith(OWN_FAULTS)]
    assert not faults, faults
    return case


def patiently(look: Callable[[], Seen], right: Callable[[Seen], bool], directory: Path, looks: int = 2) -> Seen:
    """Looks again where it is not right, and up to five times while something else has the processors."""
    found = look()
    for attempt in range(1, 5):
        starved = (others_in(case_in(directory).evidence) or 0.0) >= STARVED
        if right(found) or (attempt >= looks and not starved):
            break
        found = look()
    return found


def said(case: Case) -> str:
    return "\n".join(f"{note.level}: {note.text} {note.todo}" for note in case.notes)
