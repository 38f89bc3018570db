"""Checks many files in several processes. A cache avoids checking the same content twice."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatout.check import cache as caches
from flatout.check import files, old_programs, pins
from flatout.check.checker import Checker, Outcome, drop_traced_elsewhere, with_cell
from flatout.check.files import Problem
from flatout.check.selection import matches
from flatout.check.settings import Settings
from flatout.source.analysis.patterns import Diagnostic, Pattern
from flatout.source.editing.source_text import decode
from flatout.source.notebooks.text import NotANotebook
from flatout.source.notebooks.text import read as read_notebook

IN_PROCESS = 120
"""Up to this many files, starting other processes takes longer than the work."""
_CHUNK = 24
MOST_HELD = 64 * 2**20
"""Bytes of files that are read for the cache and kept for the check; others are read again."""


@dataclass
class Report:
    """The result for all files."""

    files: dict[str, list[Diagnostic]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    checked: int = 0
    lines: int = 0
    from_cache: int = 0
    traced: frozenset[str] = frozenset()
    """Names of functions that any of the files traces."""
    version_one: list[str] = field(default_factory=list)
    """Files that are written for TensorFlow 1."""
    measured_in: str = ""
    """The case of a run by which the findings are ranked."""
    left_out: int = 0
    """Findings that this run showed to be harmless."""
    remarks: list[str] = field(default_factory=list)
    """What the reader should know about the whole."""

    @property
    def count(self) -> int:
        return sum(len(found) for found in self.files.values())

    def all(self) -> Iterator[tuple[str, Diagnostic]]:
        """In the order of the files; those that a run has measured come first, the most expensive at the top."""
        every = [(path, item) for path, found in self.files.items() for item in found]
        return iter(sorted(every, key=lambda one: -(one[1].measured_share or 0.0)))


@dataclass(frozen=True)
class Job:
    """What every process needs."""

    patterns: tuple[Pattern, ...]
    settings: Settings
    processes: int | None = None
    cached: bool = True
    cache_root: Path = field(default_factory=Path.cwd)
    asked: frozenset[str] = frozenset()
    """Full names of the patterns that the user named."""
    seldom: bool | None = None
    """Whether patterns that matter seldom are reported; None: with all confidences only."""

    def checker(self) -> Checker:
        settings = self.settings
        return Checker(
            self.patterns,
            settings.tf,
            settings.tests,
            self.asked,
            settings.confidence,
            settings.is_pinned,
            seldom=self.seldom,
        )

    @property
    def mark(self) -> str:
        """Identifies all that affects the results, but for the files."""
        chosen = (
            *(item.full_name for item in self.patterns),
            *(f"asked {name}" for name in self.asked),
            f"{self.seldom}",
        )
        settings = self.settings
        version = (*settings.tf, int(settings.is_pinned))
        return caches.fingerprint((*chosen, settings.confidence), version, settings.tests)


def check(paths: Sequence[str], job: Job, progress: Callable[[int, int], None] = lambda done, all_: None) -> Report:
    report = Report()
    found, report.problems = files.collect(paths, job.settings)
    cache = None
    if job.cached:
        cache = caches.Cache(job.cache_root, job.mark)
    outcomes: dict[str, Outcome] = {}
    fresh: dict[str, bytes | None] = {}
    keys: dict[str, str] = {}
    held = 0
    for path in found:
        content = files.read(path) if cache is not None else None
        if isinstance(content, files.Problem):
            report.problems.append(content)
            continue
        if cache is not None and content is not None:
            keys[path] = caches.key(content, path, _pinned(path))
            known = cache.get(keys[path])
            if known is not None:
                outcomes[path] = known
                report.from_cache += 1
                continue
            held += len(content)
        fresh[path] = content if held < MOST_HELD else None
    done = len(found) - len(fresh)
    progress(done, len(found))
    for path, outcome in _outcomes(fresh, job):
        done += 1
        outcomes[path] = outcome
        if cache is not None and path in keys:
            cache.put(keys[path], outcome)
        progress(done, len(found))
    if cache is not None:
        cache.save()
    kept = {path: outcomes[path] for path in found if path in outcomes}
    if not job.settings.is_pinned:
        old_programs.spread_version_one(kept, job.asked, _pinned)
    _collect(report, kept, job.settings)
    return report


def check_text(text: bytes, path: str, job: Job) -> Report:
    """Check one text: standard input, or the buffer of an editor."""
    report = Report()
    _collect(report, {path: check_content(text, path, job.checker())}, job.settings)
    return report


def _collect(report: Report, outcomes: dict[str, Outcome], settings: Settings) -> None:
    report.traced = drop_traced_elsewhere(outcomes.values())
    for path, outcome in outcomes.items():
        report.checked += 1
        report.lines += outcome.lines
        if outcome.version_one:
            report.version_one.append(path)
        if outcome.problem:
            report.problems.append(files.Problem(path, outcome.problem))
        report.remarks += [f"{path}:{place}: {text}." for place, text in outcome.remarks]
        ignored = settings.ignored_in(path)
        kept = [item for item in outcome.diagnostics if not matches(item.cause, item.full_name, ignored)]
        if kept:
            report.files[path] = kept


def check_content(content: bytes, path: str, checker: Checker) -> Outcome:
    """One file's content, a notebook or Python source in its own encoding."""
    if path.endswith(".ipynb"):
        return _notebook(content, path, checker)
    try:
        text = decode(content).text
    except (SyntaxError, UnicodeError, LookupError) as error:
        return Outcome(problem=f"not readable as text: {error}")
    return checker.check(text, path, _pinned(path))


def _pinned(path: str) -> tuple[int, int] | None:
    return pins.oldest(os.path.dirname(path))


def _notebook(content: bytes, path: str, checker: Checker) -> Outcome:
    try:
        book = read_notebook(content)
    except NotANotebook as error:
        return Outcome(problem=str(error))
    if len(book.text) > files.LARGEST:
        return Outcome(problem=f"is left out: its cells have {len(book.text) / 2**20:.0f} MiB of source")
    outcome = checker.check(book.text, path, _pinned(path))
    outcome.diagnostics = [with_cell(item, *book.place(item.line)) for item in outcome.diagnostics]
    outcome.remarks = [("cell {}:{}".format(*book.place(int(line))), text) for line, text in outcome.remarks]
    if book.broken:
        several = "s" if len(book.broken) > 1 else ""
        outcome.problem = f"not valid Python in cell{several} {', '.join(map(str, book.broken))}"
    return outcome


def _outcomes(fresh: dict[str, bytes | None], job: Job) -> Iterator[tuple[str, Outcome]]:
    """`fresh`: the files, with their content where it has been read."""
    processes = job.processes or _cores()
    paths = list(fresh)
    if processes <= 1 or len(paths) <= IN_PROCESS:
        checker = job.checker()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser's warnings about escapes in the user's strings
            for path in paths:
                yield path, _check_file(path, checker, fresh.pop(path))
        return
    import multiprocessing  # a tenth of the time that it takes to start

    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    with context.Pool(min(processes, len(chunks)), _start, (job,)) as pool:
        for results in pool.imap(_check_chunk, chunks):
            yield from results


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_checker: Checker | None = None


def _start(job: Job) -> None:
    global _checker
    warnings.simplefilter("ignore")
    _checker = job.checker()


def _check_chunk(paths: list[str]) -> list[tuple[str, Outcome]]:
    assert _checker is not None
    return [(path, _check_file(path, _checker)) for path in paths]


def _check_file(path: str, checker: Checker, content: bytes | files.Problem | None = None) -> Outcome:
    if content is None:
        content = files.read(path)
    if isinstance(content, files.Problem):
        return Outcome(problem=content.text)
    return check_content(content, path, checker)
