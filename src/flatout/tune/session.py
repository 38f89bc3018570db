"""What surrounds a tune: its directory, its display, the case that is kept, the patch that is written."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from flatout import store
from flatout.model.case import Case
from flatout.process.fence.means import decide
from flatout.report import standard_error
from flatout.report.progress import Progress
from flatout.source.notebooks.program import is_notebook, program_of
from flatout.store import saving
from flatout.trial import launcher
from flatout.tune import branch, journal
from flatout.tune.clock import DEFAULT_SECONDS
from flatout.tune.prove import exit_code, prove
from flatout.tune.request import TuneRequest
from flatout.tune.spread import joined
from flatout.tune.tuner import Tuner

COULD_NOT_MEASURE = 3
"""The exit code where no step was seen."""


def tune(request: TuneRequest) -> int:
    """Returns the exit code."""
    case = tune_for_case(request)
    if request.prove:
        return exit_code(case)
    return 0 if case.steps is not None else COULD_NOT_MEASURE


def tune_for_case(request: TuneRequest) -> Case:
    """Tune, keep and print the case, write the patch; or prove what a tune has claimed."""
    request.check()
    if request.branch is not None:
        branch.check(request.branch, os.getcwd())
    decide(request.leave)  # raises where trials cannot be fenced, before anything is kept
    return prove(request, _tune) if request.prove else _tune(request)


def _tune(request: TuneRequest) -> Case:
    command = launcher.command_for(request.program, request.arguments, request.module)
    with joined(request, command) as cluster:  # raises where it cannot be used, before anything is kept
        directory = _unfinished(command) if request.resume else None
        directory = directory or store.new_directory(f"tune-{Path(request.program).stem or request.program}")
        with Progress(request.budget or DEFAULT_SECONDS, request.quiet) as progress:
            case = Tuner(request, directory, progress, cluster).run()
    saving.save(case, directory)
    if not request.silent:
        standard_error.show(case, "details" if request.verbose else "overview", directory, request.json, request.quiet)
    _write_patch(case, request)
    return case


def _unfinished(command: Sequence[str]) -> Path | None:
    """The tune to go on with. Trials of a program that is another one by now are not reused."""
    directory = journal.unfinished(command)
    if directory is None:
        sys.stderr.write("flatout: no tune of this command was left unfinished, or it still runs; starting a new one\n")
        return None
    changes = journal.changes_since(directory)
    if not changes:
        return directory
    more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
    sys.stderr.write(
        f"flatout: the trials of {directory.name} are not reused: {'; '.join(changes[:5])}{more}. Starting a new tune\n"
    )
    return None


def _write_patch(case: Case, request: TuneRequest) -> None:
    if request.patch is None and request.branch is None and not request.apply:
        return
    if not case.patch:
        sys.stderr.write("flatout: no patch was written: nothing that can be written as an edit has won\n")
        return
    from flatout.source.editing import unified_diff
    from flatout.trial import patch

    made = patch.raced(case)
    notebook = is_notebook(request.program)
    if notebook:
        made = patch.for_notebook(made, request.program, str(program_of(request.program)))
    alone = len(made.changes) == 1 and is_notebook(made.changes[0].path)
    if request.patch is not None and alone and is_notebook(str(request.patch)):
        request.patch.write_bytes(made.changes[0].after)
        sys.stderr.write(f"flatout: wrote {request.patch}, the notebook with the change in its cells\n")
    elif request.patch is not None and is_notebook(str(request.patch)):
        names = ", ".join(os.path.relpath(one.path, made.directory) for one in made.changes)
        sys.stderr.write(f"flatout: no patch was written: it changes {names}. Give --patch the name of a diff\n")
    elif request.patch is not None:
        request.patch.write_bytes(unified_diff.to_bytes(made.diff if notebook else case.patch))
        command = shlex.join(["patch", "-p1", "-d", made.directory, "-i", os.path.abspath(request.patch)])
        sys.stderr.write(f"flatout: wrote {request.patch}; {command} applies it\n")
    if request.branch is not None:
        words = ["-m"] * request.module + [request.program, *request.arguments]
        made_commit = branch.commit(case, made, request.branch, shlex.join(["flatout", "tune", *words]))
        sys.stderr.write(f"flatout: committed the patch as {made_commit} on the new branch {request.branch}\n")
    if request.apply:
        for path in patch.apply(made):
            sys.stderr.write(f"flatout: edited {path}\n")
