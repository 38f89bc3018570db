"""Shows the case of a command of this group."""

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
        sys.stdout.write(f"{case.verdict}\n")
    else:
        from flatout.report.terminal import render

        sys.stdout.write(render(case, view, directory=directory))
        sys.stdout.flush()
