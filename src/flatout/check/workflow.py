"""`flatout check` from a request to a report: settings, patterns, files, repairs. The command line only shows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flatout.check import files
from flatout.check import settings as settings_of
from flatout.check.driver import Job, Report, check, check_text
from flatout.check.output import View
from flatout.check.selection import OLDEST, asked, check_names, select
from flatout.model.case import Case
from flatout.model.errors import InvalidOption
from flatout.source.editing.source_text import decode

STANDARD_INPUT = "-"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    paths: tuple[str, ...] = (".",)
    select: tuple[str, ...] = ()
    """Causes, patterns or groups, in place of those of the settings."""
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    tensorflow: str | None = None
    """The oldest TensorFlow that the code is for, in place of that of the settings."""
    confidence: str | None = None
    """The least confidence of findings that nobody named, in place of that of the settings."""
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    """Show the repairs and write nothing."""
    stdin_name: str = "stdin.py"
    processes: int | None = None
    cached: bool = True
    from_case: str | None = None
    """A case of `flatout run`, or `latest`: findings are ranked by what they cost there."""
    confirm: tuple[str, ...] = ()
    """A program and its arguments, to be run once in place of `from_case`."""

    @property
    def repairs(self) -> bool:
        return self.fix or self.diff

    def job(self) -> Job:
        """The request with the settings of the nearest pyproject.toml."""
        first = Path(self.paths[0] if self.paths[0] != STANDARD_INPUT else ".")
        settings = settings_of.load(first if first.is_dir() else first.parent)
        if self.tensorflow is not None:
            settings = dataclasses.replace(settings, tf=settings_of.version(self.tensorflow), is_pinned=True)
        if self.confidence is not None:
            settings = dataclasses.replace(settings, confidence=settings_of.confidence(self.confidence))
        for names in settings.per_file_ignores.values():
            check_names(names)
        patterns = select(
            self.select or settings.select,
            (*settings.extend_select, *self.extend_select),
            (*settings.ignore, *self.ignore),
            settings.tf if settings.is_pinned else OLDEST,
        )
        named = asked(self.select or settings.select, (*settings.extend_select, *self.extend_select))
        by_run = True if self.confirm or self.from_case is not None else None  # then the run tells what matters
        return Job(patterns, settings, self.processes, self.cached, asked=named, seldom=by_run)


Runner = Callable[[tuple[str, ...]], Case | None]
"""Runs a program once, observed. `run` and `check` are siblings: who knows both passes this on."""


def judged_by_run(report: Report, request: Request, run: Runner) -> None:
    """Let a run of the program decide about the findings, where the request names one."""
    if request.confirm and request.from_case is not None:
        raise InvalidOption("--from takes a run that was made, --confirm makes one: give one of them.")
    if (request.confirm or request.from_case is not None) and request.repairs:
        raise InvalidOption("--from and --confirm rank findings; --fix and --diff repair them: give one of them.")
    if not request.confirm and request.from_case is None:
        return
    from flatout import store  # brings numpy, which takes as long to import as all else
    from flatout.check import measured

    if request.confirm:
        case = run(request.confirm)
        if case is None or case.steps is None:
            program = " ".join(request.confirm)
            report.remarks.append(f"The run of {program} showed no steps of TensorFlow, so it decides nothing.")
            return
        measured.apply(report, case, "the run")
    else:
        assert request.from_case is not None
        path = store.locate(request.from_case)
        measured.apply(report, store.load(path), path.parent.resolve().name)


def check_paths(
    request: Request, job: Job, progress: Progress, show: Callable[[str], None], repaired: Callable[[int], None]
) -> Report:
    """Check files and directories, and repair them if requested. `show` gets the diffs, `repaired` the count."""
    report = check(request.paths, job, progress)
    if not request.repairs:
        return report
    from flatout.check.file_repair import repair  # libcst is slow to import

    count = repair(report, job, request.unsafe_fixes, show if request.diff else None)
    if request.diff or not count:
        return report
    repaired(count)
    return check(request.paths, job, lambda done, total: None)


def repair_text(content: bytes, request: Request, job: Job) -> bytes:
    """The repaired content of standard input, or with `diff` the changes."""
    from flatout.check.file_repair import is_wanted
    from flatout.check.text_repair import fix
    from flatout.source.editing.unified_diff import diff, to_bytes

    result = fix(content, request.stdin_name, job.checker(), lambda item: is_wanted(item, request.unsafe_fixes))
    if request.diff:
        return to_bytes(diff(content, result.content, request.stdin_name.lstrip("/")))
    return result.content


def check_input(content: bytes, request: Request, job: Job) -> Report:
    return check_text(content, request.stdin_name, job)


def view_of(report: Report) -> View:
    """The report with the source of the files that have findings."""
    texts: dict[str, list[str]] = {}
    for path in report.files:
        content = files.read(path) if not path.endswith(".ipynb") else b""
        if isinstance(content, bytes):
            try:
                text = decode(content).text
            except (SyntaxError, UnicodeError, LookupError):
                continue
            texts[path] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return View(report, Path.cwd(), texts)
