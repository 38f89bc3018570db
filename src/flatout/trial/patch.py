"""Levers written into the program's own source as a patch: made, checked, applied.

Nothing here imports TensorFlow. A patch holds each file's bytes before and after. It is applied only to files that are
still as they were, all of them or none, and applying it again changes nothing.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout.cures import Edit, edit_of, find, in_order
from flatout.model.case import Case, Where
from flatout.model.errors import PatchFailed
from flatout.model.levers import parse
from flatout.source import users_code
from flatout.source.editing import source_text, unified_diff
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.line_tracking import LineMap, follow
from flatout.source.editing.program_files import own_files
from flatout.source.notebooks import program as notebooks


@dataclass(frozen=True)
class Change:
    path: str
    before: bytes
    after: bytes


@dataclass(frozen=True)
class Patch:
    changes: tuple[Change, ...] = ()
    directory: str = ""
    """The names in the diff are relative to this."""
    written: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    """Levers for which there is no edit of this source."""

    @property
    def diff(self) -> str:
        return "".join(
            unified_diff.diff(
                change.before, change.after, os.path.relpath(change.path, self.directory).replace(os.sep, "/")
            )
            for change in self.changes
        )

    @property
    def files(self) -> dict[str, str]:
        """Path → new text."""
        return {change.path: source_text.decode(change.after).text for change in self.changes}


def make(case: Case, levers: Sequence[str], root: Path | None = None) -> Patch:
    """Write these levers (`cache`, `steps-per-execution=16`) as edits of the files that the case names."""
    files = {path: source for path in own_files(case) if (source := source_text.load(path)) is not None}
    if root is not None:
        files = {path: text for path, text in files.items() if Path(path).is_relative_to(os.path.abspath(root))}
    texts = {path: source.text for path, source in files.items()}
    for path, source in files.items():
        _expect_unchanged(case, path, source.bytes_of(source.text))
    written: list[str] = []
    lines: dict[str, list[LineMap]] = {path: [] for path in files}
    for lever in in_order(levers):
        name, value = parse(lever)
        edit = edit_of(find(name))
        for path, text in list(texts.items()):
            new = _try(edit, text, path, case, _value_now(value, lines))
            if new is None:
                continue
            moved = LineMap(text, new)
            case, texts[path] = follow(case, path, moved), new
            lines[path].append(moved)
            written.append(lever)
    changes = tuple(
        Change(path, source.bytes_of(source.text), source.bytes_of(texts[path]))
        for path, source in files.items()
        if texts[path] != source.text
    )
    done = tuple(dict.fromkeys(written))
    return Patch(changes, _directory(case, changes, root), done, tuple(name for name in levers if name not in done))


def raced(case: Case) -> Patch:
    """The patch of a tune, made once more of the source as it stands. Raises `PatchFailed` where that is another one
    than was raced and kept: what was measured says nothing of it."""
    made = make(case, case.tuned)
    if made.diff != case.patch:
        names = ", ".join(sorted({os.path.relpath(one.path, made.directory) for one in made.changes})) or "the program"
        raise PatchFailed(
            f"{names} has changed since the patch was raced: another patch would be made of it now, and nothing was "
            "measured of that one. Nothing was written. Run `flatout tune` again for the source as it is; "
            "`flatout show --view patch` prints the patch that was raced."
        )
    return made


def for_notebook(made: Patch, notebook: str, program: str) -> Patch:
    """The same edits in the cells of a notebook; `program` is the file that ran in its place. Raises `PatchFailed`."""
    path = os.path.abspath(notebook)
    before = Path(path).read_bytes()
    changes = []
    for one in made.changes:
        if not same_file(one.path, program):
            changes.append(one)
            continue
        after = notebooks.edited(path, source_text.decode(one.after).text)
        if after == before:
            raise PatchFailed(
                f"{notebook} is laid out in a way that cannot be edited cell by cell. Save it in Jupyter."
            )
        changes.append(Change(path, before, after))
    return replace(made, changes=tuple(changes), directory=os.path.dirname(path))


def _value_now(value: str, lines: Mapping[str, list[LineMap]]) -> str:
    """A value that is a location, `train.py:31`, follows its line through the edits so far."""
    match = re.fullmatch(r"(.+):(\d+)", value)
    if match is None:
        return value
    line = int(match.group(2))
    for path, steps in lines.items():
        if same_file(path, match.group(1)):
            for moved in steps:
                line = moved.line(line)
    return f"{match.group(1)}:{line}"


def _try(edit: Edit | None, text: str, path: str, case: Case, value: str) -> str | None:
    """The edited text, or None. No patch is better than a broken one: an edit that raises changes nothing."""
    try:
        new = edit(text, path, case, value) if edit is not None else None
        if new is not None:
            ast.parse(new)
    except Exception:
        return None
    return new if new != text else None


def _expect_unchanged(case: Case, path: str, content: bytes) -> None:
    rows = [row.strip()[:300] for row in source_text.lines(content.decode("utf-8-sig", "replace"))]
    for where in _locations(case):
        if not same_file(path, where.file) or where.line is None or where.code is None:
            continue
        if where.line > len(rows) or rows[where.line - 1] != where.code:
            raise PatchFailed(
                f"{path} has changed since the program was observed: line {where.line} was {where.code!r}. "
                "Run `flatout tune` again to get a patch for the source as it is now."
            )


def _locations(case: Case) -> Iterator[Where]:
    found = [case.steps.where] if case.steps is not None else []
    found += [finding.where for finding in case.findings]
    found += [function.where for function in case.functions]
    found += [stage.where for pipeline in case.pipelines for stage in pipeline.stages]
    return (where for where in found if where is not None)


def _directory(case: Case, changes: Sequence[Change], root: Path | None) -> str:
    """The working directory; for files outside of it the directory that holds it and them all: there the patch applies,
    and the names in it say where they are."""
    here = root or case.program.directory or os.getcwd()
    paths = [change.path for change in changes]
    for wanted in (os.path.abspath(here), os.path.realpath(here)):
        if all(Path(path).is_relative_to(wanted) for path in paths):
            return wanted
    folders = [os.path.dirname(path) for path in paths]
    above = os.path.commonpath([*folders, os.path.realpath(here)])
    return above if above != os.path.sep else os.path.commonpath(folders)


# ── checked and applied ──────────────────────────────────────────────────────────────────────────────────────────────


def check(patch: Patch) -> tuple[Change, ...]:
    """The changes still to be written. Raises if a file has changed since, or if a result would not be Python."""
    waiting = []
    for change in patch.changes:
        if not users_code.is_users_file(change.path):
            raise PatchFailed(f"{change.path} belongs to a library. Only the program's own files are edited.")
        try:
            ast.parse(change.after, change.path)
        except (SyntaxError, ValueError) as error:
            raise PatchFailed(
                f"The edit of {change.path} would not be valid Python ({error}); nothing was written."
            ) from None
        try:
            now = Path(change.path).read_bytes()
        except OSError as error:
            raise PatchFailed(f"{change.path} cannot be read: {error.strerror}. Nothing was written.") from None
        if now == change.after:
            continue
        if now != change.before:
            raise PatchFailed(
                f"{change.path} has changed since the patch was made, so the patch may not fit. Nothing was written; "
                "run `flatout tune` again, or apply the diff by hand with `git apply`."
            )
        waiting.append(change)
    return tuple(waiting)


def apply(patch: Patch) -> tuple[str, ...]:
    """Write the files, all or none, each atomically. The old text is kept as `<file>.orig`."""
    waiting = check(patch)
    ready: list[tuple[Change, str, str]] = []
    try:
        for change in waiting:
            target = os.path.realpath(change.path)  # a link stays a link
            ready.append((change, target, _temporary_copy(target, change.after)))
            _keep(target, change.before)
        for _, target, new in ready:
            os.replace(new, target)
    except BaseException as error:  # Ctrl-C as well
        for change, target, new in ready:
            if not os.path.exists(new):  # it has taken its place
                os.replace(_temporary_copy(target, change.before), target)
        for _, _, new in ready:
            Path(new).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise PatchFailed(
            f"{error.filename or 'A file'} cannot be written: {error.strerror}. The sources are as they were."
        ) from None
    return tuple(change.path for change in waiting)


def _temporary_copy(target: str, content: bytes) -> str:
    """A new file in the same directory, with the mode of the old one."""
    handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=f".{os.path.basename(target)}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, os.stat(target).st_mode & 0o7777)
    except BaseException:  # a full disk, Ctrl-C
        os.unlink(name)
        raise
    return name


def _keep(target: str, content: bytes) -> None:
    """`train.py.orig`, or `.orig.1` and so on where that holds something else."""
    number = 0
    while True:
        backup = Path(f"{target}.orig" + (f".{number}" if number else ""))
        try:
            with open(backup, "xb") as stream:
                stream.write(content)
            return
        except FileExistsError:
            if backup.is_file() and backup.read_bytes() == content:
                return
        number += 1
