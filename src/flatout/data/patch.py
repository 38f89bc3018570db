"""Writes the winning rewrites as edits of the source, after a run that checks that the elements stay the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from flatout.cures import levers as all_levers
from flatout.data import session
from flatout.data.task import PipelineTask
from flatout.model.case import Case, Note
from flatout.model.errors import FlatoutError
from flatout.model.evidence.pipelines import PipelineDigest
from flatout.model.levers import parse
from flatout.source.editing import unified_diff
from flatout.trial import patch as patches

CHECK_SECONDS = 60.0


def with_patch(case: Case, request: session.PipelineRequest, directory: Path, quiet: bool) -> Case:
    """The case with the diff, if the winners can be edits and the edited program yields the same elements."""
    known = [lever for lever in case.tuned if parse(lever)[0] in all_levers()]
    if not known:
        return case
    try:
        made = patches.make(case, known)
    except FlatoutError as error:
        return replace(case, notes=(*case.notes, Note("warning", f"No patch: {error}")))
    if not made.changes:
        return case
    unwritten = [lever for lever in case.tuned if lever not in made.written]
    notes = [
        Note("info", f"The patch does not contain {lever}: it cannot be written as an edit.") for lever in unwritten
    ]
    problem = _difference(case, made, request, directory, quiet)
    if problem:
        return replace(case, notes=(*case.notes, Note("warning", f"No patch: {problem}.")))
    return replace(case, patch=made.diff, notes=(*case.notes, *notes))


def _difference(case: Case, made: patches.Patch, request: session.PipelineRequest, directory: Path, quiet: bool) -> str:
    """How the edited program differs; empty if it does not."""
    sources = []
    for number, (path, text) in enumerate(made.files.items()):
        edited = directory / f"edited-{number}.py"
        edited.write_text(text, encoding="utf-8")
        sources.append((path, str(edited)))
    task = PipelineTask(do="digest", pipeline=request.task.pipeline)
    digest_request = replace(request, task=task, seconds=CHECK_SECONDS)
    try:
        before = session.run(digest_request, directory / "before", quiet)
        after = session.run(digest_request, directory / "after", quiet, sources)
    except FlatoutError as error:
        return f"the edited program could not be run ({error})"
    one, other = _digest(before), _digest(after)
    if one is None or other is None or not (one.whole and other.whole):
        return "an epoch of the edited program takes too long to compare" if one is not None else "nothing to compare"
    return "" if one.value == other.value else "the edited program yields other elements"


def _digest(case: Case) -> PipelineDigest | None:
    return next(iter(case.evidence_of(PipelineDigest)), None)


def write(case: Case, target: Path | None, apply: bool) -> None:
    """Write the diff into a file, and edit the source, if requested."""
    if target is not None and case.patch:
        target.write_bytes(unified_diff.to_bytes(case.patch))
        sys.stderr.write(f"flatout: wrote {target}\n")
    elif (target is not None or apply) and not case.patch:
        sys.stderr.write("flatout: no patch was written: no winning rewrite can be written as an edit\n")
    if apply and case.patch:
        known = [lever for lever in case.tuned if parse(lever)[0] in all_levers()]
        for path in patches.apply(patches.make(case, known)):
            sys.stderr.write(f"flatout: edited {path}\n")
