"""The traces of a case: in its log directory, or where `flatout trace` read them, if they still exist.

A case may come from somebody else: a log directory outside of the case's directory is not read.
"""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import FlatoutError
from flatout.trace.files import SUFFIXES, find_files
from flatout.trace.model import Trace
from flatout.trace.xplane import load

LARGEST_FILE = 400 * 2**20
FAR_APART = 3600 * 10**9


def read_traces(case: Case, directory: Path | None) -> tuple[tuple[Trace, int], ...]:
    """Every trace, and the offset of its clock to that of the first one in picoseconds."""
    found: list[tuple[Trace, int]] = []
    for file in _files(case, directory):
        try:
            trace = load(file)
            origin = trace.origin_ns
        except (FlatoutError, OSError, ValueError):
            continue
        base = found[0][0].origin_ns if found else origin
        # A host counts from its start of profiling or from the epoch; clocks that are far apart cannot be aligned.
        found.append((trace, (origin - base) * 1000 if abs(origin - base) < FAR_APART else 0))
    return tuple(found)


def _files(case: Case, directory: Path | None) -> list[Path]:
    given: list[Path] = []
    if directory is not None and case.logdir:
        inside = (directory / case.logdir).resolve()
        if inside.is_dir() and inside.is_relative_to(directory.resolve()):
            given = [inside]
    elif case.kind == "trace":
        given = [Path(word) for word in case.program.command[1:] if word.endswith(SUFFIXES) and Path(word).is_file()]
    try:
        files = find_files(given) if given else []
        return [file for file in files if file.stat().st_size <= LARGEST_FILE]
    except (FlatoutError, OSError):
        return []
