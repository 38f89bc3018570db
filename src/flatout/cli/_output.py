"""Shows a case on standard output: of commands that start no program whose output that would be."""

from __future__ import annotations

import sys
from pathlib import Path

from flatout.model.case import Case


def show(case: Case, view: str, directory: Path, json: str | None, quiet: bool) -> None:
    """Print the view, or the verdict alone, unless `--json -` prints the case."""
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    if json == "-":
        return
    if quiet:
        from flatout.report.terminal import headline

        sys.stdout.write(f"{headline(case)}\n")
    else:
        from flatout.report.terminal import render

        sys.stdout.write(render(case, view, directory=directory))
        sys.stdout.flush()
