"""Checks many files: on as many cores as there are, none of them twice, and none of them the end of the others."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatout.check import cache as caches
from flatout.check import files, notebooks
from flatout.check.checker import Checker, Outcome, without_the_traced
from flatout.check.files import Problem
from flatout.check.selection import matches
from flatout.check.settings import Settings
from flatout.source.analysis.patterns import Diagnostic, Pattern
from flatout.source.editing.source_text import decode

ALONE = 120
"""Files up to which starting other processes takes longer than the work."""
_SHARE = 24


@dataclass
class Report:
    """What `check` found."""

    files: dict[str, list[Diagnostic]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    checked: int = 0
    lines: int = 0
    from_cache: int = 0
    traced: frozenset[str] = frozenset()
    """Names of functions that some file traces."""

    @property
    def count(self) -> int:
        return sum(len(found) for found in self.files.values())

    def all(self) -> Iterator[tuple[str, Diagnostic]]:
        return ((path, item) for path, found in self.files.items() for item in found)


@dataclass(frozen=True)
class Job:
    """What every process must know."""

    patterns: tuple[Pattern, ...]
    settings: Settings
    processes: int | None = None
    cached: bool = True
    cache_root: Path = field(default_factory=Path.cwd)

    def checker(self) -> Checker:
        return Checker(self.patterns, self.settings.tf, self.settings.tests)


def check(paths: Sequence[str], job: Job, progress: Callable[[int, int], None] = lambda done, all_: None) -> Report:
    report = Report()
    found, report.problems = files.collect(paths, job.settings)
    cache = None
    if job.cached:
        mark = caches.fingerprint((item.full_name for item in job.patterns), job.settings.tf, job.settings.tests)
        cache = caches.Cache(job.cache_root, mark)
    outcomes: dict[str, Outcome] = {}
    fresh: list[str] = []
    keys: dict[str, str] = {}
    for path in found:
        content = files.read(path) if cache is not None else b""
        if isinstance(content, files.Problem):
            report.problems.append(content)
            continue
        if cache is not None:
            keys[path] = caches.key(content, path)
            known = cache.get(keys[path])
            if known is not None:
                outcomes[path] = known
                report.from_cache += 1
                continue
        fresh.append(path)
    progress(len(found) - len(fresh), len(found))
    for number, (path, outcome) in enumerate(_outcomes(fresh, job)):
        outcomes[path] = outcome
        if cache is not None and path in keys:
            cache.put(keys[path], outcome)
        progress(len(found) - len(fresh) + number + 1, len(found))
    if cache is not None:
        cache.save()
    _gather(report, {path: outcomes[path] for path in found if path in outcomes}, job.settings)
    return report


def check_text(text: bytes, path: str, job: Job) -> Report:
    """One text that need not be a file: standard input, an editor's buffer."""
    report = Report()
    _gather(report, {path: look(text, path, job.checker())}, job.settings)
    return report


def _gather(report: Report, outcomes: dict[str, Outcome], settings: Settings) -> None:
    report.traced = without_the_traced(outcomes.values())
    for path, outcome in outcomes.items():
        report.checked += 1
        report.lines += outcome.lines
        if outcome.problem:
            report.problems.append(files.Problem(path, outcome.problem))
        ignored = settings.ignored_in(path)
        kept = [item for item in outcome.diagnostics if not matches(item.cause, item.full_name, ignored)]
        if kept:
            report.files[path] = kept


def look(content: bytes, path: str, checker: Checker) -> Outcome:
    """One file's content, a notebook or Python source in its own encoding."""
    if path.endswith(".ipynb"):
        return _notebook(content, path, checker)
    try:
        text = decode(content).text
    except (SyntaxError, UnicodeError, LookupError) as error:
        return Outcome(problem=f"not readable as text: {error}")
    return checker.check(text, path)


def _notebook(content: bytes, path: str, checker: Checker) -> Outcome:
    try:
        book = notebooks.read(content)
    except notebooks.NotANotebook as error:
        return Outcome(problem=str(error))
    outcome = checker.check(book.text, path)
    outcome.diagnostics = [book.place(item) for item in outcome.diagnostics]
    if book.broken:
        several = "s" if len(book.broken) > 1 else ""
        outcome.problem = f"not valid Python in cell{several} {', '.join(map(str, book.broken))}"
    return outcome


# ── on many cores ────────────────────────────────────────────────────────────────────────────────────────────────


def _outcomes(paths: list[str], job: Job) -> Iterator[tuple[str, Outcome]]:
    processes = job.processes or _cores()
    if processes <= 1 or len(paths) <= ALONE:
        checker = job.checker()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parser, about the user's escapes
            for path in paths:
                yield path, _one(path, checker)
        return
    shares = [paths[start : start + _SHARE] for start in range(0, len(paths), _SHARE)]
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    with context.Pool(min(processes, len(shares)), _start, (job,)) as pool:
        for results in pool.imap(_share, shares):
            yield from results


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_checker: Checker | None = None


def _start(job: Job) -> None:
    global _checker
    warnings.simplefilter("ignore")
    _checker = job.checker()


def _share(paths: list[str]) -> list[tuple[str, Outcome]]:
    assert _checker is not None
    return [(path, _one(path, _checker)) for path in paths]


def _one(path: str, checker: Checker) -> Outcome:
    content = files.read(path)
    if isinstance(content, files.Problem):
        return Outcome(problem=content.text)
    return look(content, path, checker)
