"""The runs that a user names for one side of a comparison.

A side is one case, several separated by commas, or a pattern: `before-1,before-2`, `'train-202611*'`. Several runs of
the same program are repeats and make the interval narrower.
"""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

from flatout import store
from flatout.compare.part_errors import part_errors
from flatout.model.case import Case
from flatout.model.errors import CaseNotFound
from flatout.store.run_summary import Run, run_of


def runs_of(text: str, home: Path | None = None) -> list[Run]:
    found: dict[Path, Run] = {}
    for path in paths_of(text, home):
        found.setdefault(path.resolve(), load_run(path))
    return list(found.values())


def paths_of(text: str, home: Path | None = None) -> list[Path]:
    """The case files, in the order given."""
    found: list[Path] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        found += _matching(word, home) if glob.has_magic(word) else [store.locate(word, home)]
    if not found:
        raise CaseNotFound("A side of the comparison is empty. Name a case, or several separated by commas.")
    return found


def load_run(path: Path) -> Run:
    """A case file as a run, with the errors of its parts if its trace is in the same directory."""
    return complete(store.load(path), path.resolve().parent)


def complete(case: Case, directory: Path) -> Run:
    return replace(run_of(case, directory.name), part_errors=part_errors(case, directory))


def _matching(pattern: str, home: Path | None) -> list[Path]:
    """A pattern of paths, as in a shell, or of names of kept cases."""
    cases = (home or Path.cwd() / store.HOME) / "cases"
    names = sorted(glob.glob(pattern)) or sorted(glob.glob(pattern, root_dir=cases))
    candidates = [path if (path := Path(name)).exists() else cases / name for name in names]
    files = [path if path.is_file() else path / store.FILE for path in candidates]
    found = [path for path in files if path.is_file()]
    if not found:
        raise CaseNotFound(
            f"No case matches {pattern!r}, neither here nor in {cases}. `flatout history` lists those that are kept."
        )
    return found
