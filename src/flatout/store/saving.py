"""Saves a finished case: its file, the pointer to the latest, a row of the history."""

from __future__ import annotations

import os
from pathlib import Path

from flatout.model.case import Case
from flatout.store.cases import write_case
from flatout.store.records import record, with_origin


def save(case: Case, directory: Path) -> Path:
    """Write the case into its directory, point `latest` at it, and put it into the history."""
    case = with_origin(case, directory)
    path = write_case(case, directory)
    home = directory.parent.parent
    pointer = home / f".latest.{os.getpid()}"
    pointer.unlink(missing_ok=True)
    pointer.symlink_to(os.path.relpath(directory, home))
    os.replace(pointer, home / "latest")
    record(case, directory)
    return path
