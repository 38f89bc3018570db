"""Repairs all files of a report, or shows what would change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from flatout.check.driver import Job, Report
from flatout.check.selection import matches
from flatout.check.text_repair import fix
from flatout.model.errors import OutputNotWritable
from flatout.source.analysis.patterns import Diagnostic
from flatout.source.editing.unified_diff import diff


def is_wanted(item: Diagnostic, unsafe: bool) -> bool:
    return item.repair is not None and (unsafe or item.repair.safe)


def repair(report: Report, job: Job, unsafe: bool, show: Callable[[str], None] | None = None) -> int:
    """Repair the files in place, or pass the diffs to `show`. Returns the number of repaired faults."""
    checker = job.checker()
    repaired = 0
    for path, found in report.files.items():
        if not any(is_wanted(item, unsafe) for item in found):
            continue
        before = Path(path).read_bytes()
        result = fix(before, path, checker, _chooser(path, job, unsafe), report.traced)
        if result.content == before:
            continue
        repaired += len(result.applied)
        if show is not None:
            show(diff(before, result.content, path.lstrip("/")))
        else:
            _replace(Path(path), result.content)
    return repaired


def _chooser(path: str, job: Job, unsafe: bool) -> Callable[[Diagnostic], bool]:
    """Faults that are ignored in a file are not repaired there."""
    ignored = job.settings.ignored_in(path)
    return lambda item: is_wanted(item, unsafe) and not matches(item.cause, item.full_name, ignored)


def _replace(path: Path, content: bytes) -> None:
    """Replace the content atomically, keeping the mode of the file."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OutputNotWritable(f"{path} could not be written: {error.strerror}. It is unchanged.") from None
