"""What surrounds a tune: its directory, its display, the case that is kept, the patch that is written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flatout import store
from flatout.model.case import Case
from flatout.report.progress import Progress
from flatout.store import saving
from flatout.trial import launcher
from flatout.tune import journal
from flatout.tune.request import TuneRequest
from flatout.tune.tuner import Tuner


def tune(request: TuneRequest) -> int:
    """Returns the exit code."""
    request.check()
    command = launcher.command_for(request.program, request.arguments, request.module)
    directory = journal.unfinished(command) if request.resume else None
    if request.resume and directory is None:
        sys.stderr.write("flatout: there is no unfinished tune of this command here; starting a new one\n")
    directory = directory or store.new_directory(f"tune-{Path(request.program).stem or request.program}")
    with Progress(request.budget, request.quiet) as progress:
        case = Tuner(request, directory, progress).run()
    saving.save(case, directory)
    _show(case, directory, request)
    _write_patch(case, request)
    return 0 if case.steps is not None else 1


def _show(case: Case, directory: Path, request: TuneRequest) -> None:
    if request.json is not None:
        from flatout.report.json import write

        write(case, request.json)
    if request.quiet:
        sys.stderr.write(f"flatout: {case.verdict}\n")
        return
    from flatout.report.terminal import render

    terminal = sys.stderr.isatty()
    width = os.get_terminal_size(sys.stderr.fileno()).columns if terminal else None
    text = render(case, "trials", width, terminal and "NO_COLOR" not in os.environ, directory=directory)
    sys.stderr.write("\n" + text)


def _write_patch(case: Case, request: TuneRequest) -> None:
    if request.patch is not None and case.patch:
        from flatout.source.editing import unified_diff

        request.patch.write_bytes(unified_diff.to_bytes(case.patch))
        sys.stderr.write(f"flatout: wrote {request.patch}\n")
    elif request.patch is not None:
        sys.stderr.write("flatout: no patch was written: nothing that can be written as an edit has won\n")
    if request.apply and case.patch:
        from flatout.trial import patch

        for path in patch.apply(patch.make(case, case.tuned)):
            sys.stderr.write(f"flatout: edited {path}\n")
