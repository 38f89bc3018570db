"""Saves a finished case: its file, the pointer to the latest, and a row of the history.

Kept cases that are missing in the history, such as copied ones, are added when the history is read.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import FlatoutError
from flatout.store import origin, permissions
from flatout.store.cases import FILE, load, write_case
from flatout.store.database import History, open_in
from flatout.store.run_summary import Run, program_file, run_of

KINDS = ("run", "tune", "trace")
"""Kinds of cases that have steps."""


def save(case: Case, directory: Path) -> Path:
    """Write the case into its directory, point `latest` to it, and add it to the history."""
    case = with_origin(case, directory)
    path = write_case(case, directory)
    home = directory.parent.parent
    pointer = home / f".latest.{os.getpid()}"
    pointer.unlink(missing_ok=True)
    pointer.symlink_to(os.path.relpath(directory, home))
    os.replace(pointer, home / "latest")
    record(case, directory)
    permissions.close(directory)
    return path


def with_origin(case: Case, directory: Path) -> Case:
    """The case with what was recorded about its source when it began."""
    facts = origin.read(directory)
    root = str(facts.get("root") or "")
    inside = Path(case.program.directory or "/").is_relative_to(root) if root else True
    if not facts or not inside or "source" in case.environment:
        return case  # a case from another directory, or one that has its origin already
    kept = origin.source_of(facts, program_file(case))
    return replace(case, environment={**case.environment, "source": kept}) if kept else case


def record(case: Case, directory: Path) -> None:
    """Add a saved case to the history. A failure is reported and never makes the run fail."""
    if case.kind not in KINDS or case.steps is None:
        return
    try:
        with open_in(directory.parent.parent) as history:
            add(history, case, directory, time.time())
    except Exception as error:
        sys.stderr.write(f"flatout: the run was not added to the history: {error}\n")


def add(history: History, case: Case, directory: Path, recorded: float) -> None:
    history.add(run_of(case, directory.name), key_of(case, directory.name), str(directory.resolve()), recorded)


def catch_up(history: History, home: Path) -> int:
    """Add kept cases that are missing in the history: older ones, or those of a moved directory."""
    known = history.keys()
    found = 0
    missing: list[tuple[Run, str, str, float]] = []
    for path in sorted((home / "cases").glob(f"*/{FILE}")):
        with contextlib.suppress(FlatoutError, OSError, ArithmeticError, AttributeError, TypeError, ValueError):
            if _is_known(path, known):
                continue
            case = load(path)
            if case.kind in KINDS and case.steps is not None and key_of(case, path.parent.name) not in known:
                run, when = run_of(case, path.parent.name), _when(case, path)
                missing.append((run, key_of(case, path.parent.name), str(path.parent.resolve()), when))
    with contextlib.suppress(FlatoutError):  # it may be read, but not be written: the others would wait in vain too
        for row in missing:
            with contextlib.suppress(ValueError, TypeError):
                history.add(*row)
                found += 1
    return found


def key_of(case: Case, name: str) -> str:
    """Identifies a run, wherever its directory is moved to."""
    identity = json.dumps([name, case.kind, case.program.started, list(case.program.command)])
    return f"{name}:{hashlib.sha256(identity.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"


def _when(case: Case, path: Path) -> float:
    """When a case was made, from the case itself: the time of a copied file is another one."""
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(case.program.started).timestamp() + case.program.seconds
    return path.stat().st_mtime


def _is_known(path: Path, known: set[str]) -> bool:
    """Decided by the name alone, so that a thousand kept cases need not be read each time."""
    return any(key.startswith(f"{path.parent.name}:") for key in known)
