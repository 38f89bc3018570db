"""Shows the case of a command of this group."""

from __future__ import annotations

import sys
from pathlib import Path

from flatout.model.case import Case


def show(case: Case, view: str, directory: Path, json: str | None, quiet: bool) -> None:
    """Print the view, unless `--json -` prints the case."""
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    if quiet:
        sys.stderr.write(f"flatout: {case.verdict}\n")
    elif json != "-":
        from flatout.report.terminal import render

        sys.stdout.write(render(case, view, directory=directory))
        sys.stdout.flush()
