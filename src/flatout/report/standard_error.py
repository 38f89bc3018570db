"""Shows the result of a command whose standard output is the program's own: on standard error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flatout.model.case import Case


def show(case: Case, view: str, directory: Path, json: str | None = None, quiet: bool = False) -> None:
    """Write the case as JSON where asked for, and print a view of it; the first sentence where it is to be quiet."""
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    if quiet:
        from flatout.report.terminal import headline

        sys.stderr.write(f"flatout: {headline(case)}\n")
        return
    from flatout.report.terminal import render
    from flatout.report.terminal.output import styled

    width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else None
    sys.stderr.write("\n" + render(case, view, width, styled(sys.stderr), directory=directory))
