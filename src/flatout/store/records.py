"""A kept case becomes a row of the history, when it is saved or, at the latest, when the history is read."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import FlatoutError
from flatout.store import origin
from flatout.store.cases import FILE, load
from flatout.store.database import History, open_in
from flatout.store.run import program_file, run_of

KINDS = ("run", "tune", "trace")
"""Kinds of cases that have steps."""


def with_origin(case: Case, directory: Path) -> Case:
    """The case, with what was written down about its source when it was begun."""
    facts = origin.read(directory)
    root = str(facts.get("root") or "")
    inside = Path(case.program.directory or "/").is_relative_to(root) if root else True
    if not facts or not inside or "source" in case.environment:
        return case  # a case of somewhere else knows better, or nobody does
    kept = origin.source_of(facts, program_file(case))
    return replace(case, environment={**case.environment, "source": kept}) if kept else case


def record(case: Case, directory: Path) -> None:
    """Put a saved case into the history. It may be left out, but it never makes a run fail."""
    if case.kind not in KINDS or case.steps is None:
        return
    try:
        with open_in(directory.parent.parent) as history:
            add(history, case, directory, time.time())
    except Exception as error:
        sys.stderr.write(f"flatout: the history was not written: {error}\n")


def add(history: History, case: Case, directory: Path, recorded: float) -> None:
    history.add(run_of(case, directory.name), key_of(case, directory.name), str(directory.resolve()), recorded)


def catch_up(history: History, home: Path) -> int:
    """Take in the kept cases that the history does not know: older ones, or those of a moved directory."""
    known = history.keys()
    found = 0
    for path in sorted((home / "cases").glob(f"*/{FILE}")):
        with contextlib.suppress(FlatoutError, OSError, ArithmeticError, AttributeError, TypeError, ValueError):
            if _seen(path, known):
                continue
            case = load(path)
            if case.kind in KINDS and case.steps is not None and key_of(case, path.parent.name) not in known:
                add(history, case, path.parent, _when(case, path))
                found += 1
    return found


def key_of(case: Case, name: str) -> str:
    """The same for the same run, wherever its directory is moved to."""
    told = json.dumps([name, case.kind, case.program.started, list(case.program.command)])
    return f"{name}:{hashlib.sha256(told.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"


def _when(case: Case, path: Path) -> float:
    """When a case was made that nobody recorded: by its own word, for a copied file has another time."""
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(case.program.started).timestamp() + case.program.seconds
    return path.stat().st_mtime


def _seen(path: Path, known: set[str]) -> bool:
    """By the name alone, so that a thousand kept cases need not be read each time."""
    return any(key.startswith(f"{path.parent.name}:") for key in known)
