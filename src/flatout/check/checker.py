"""Checks one text: selects the patterns that can apply, runs them, and locates what they find."""

from __future__ import annotations

import ast
import gc
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from flatout.causes import catalogue
from flatout.check.prefilter import Code, Prefilter, words_in
from flatout.check.suppressions import Suppressions
from flatout.source.analysis import consequence
from flatout.source.analysis.consequence import is_test
from flatout.source.analysis.imports import imported_modules
from flatout.source.analysis.patterns import LEVELS, Confidence, Diagnostic, Match, Pattern
from flatout.source.analysis.scopes import Module, Scope, Site, parses
from flatout.source.analysis.syntax import last_name
from flatout.source.analysis.traced_functions import traced
from flatout.source.analysis.version_one import fails_with_two, is_version_one, is_version_two

VERSION = (2, 16)
"""The TensorFlow that code is checked for by default: the oldest that flatout supports."""
PATIENCE = 30.0
"""Seconds of a processor after which a file is checked no further: generated code with thousands of loops."""
_FAILS = ("gone-api", "legacy-pipeline", "debug-left-on")
"""Causes of what fails, or floods the log, however small the data are."""
_PACKAGES = frozenset({b"tf", b"tensorflow", b"keras", b"tf_keras", b"tf_slim"})
_IN_PACKAGES = ("tf", "tensorflow", "keras")
_TRACERS = frozenset(
    {b"function", b"def_function", b"defun", b"tf_function", b"jit_compile", b"function_in_tf1", b"train_step"}
)


@dataclass
class Outcome:
    """The result for one text."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    problem: str = ""
    """Why it could not be checked, in one line; empty if it could."""
    traced: list[str] = field(default_factory=list)
    """Names of functions that this file traces, or that its traced functions call: other files may define them."""
    lines: int = 0
    version_one: bool = False
    """Whether it is written for TensorFlow 1, and was checked for what was asked for by name only."""
    relevant: bool = False
    """Whether it names TensorFlow or Keras at all."""
    version_two: bool = False
    """Whether it is for TensorFlow 2, whatever the files around it are for."""
    fails_with_two: bool = False
    """Whether it fails with TensorFlow 2, and with it what imports it."""
    imports: list[str] = field(default_factory=list)
    """Modules that it imports and that may be of its project."""
    remarks: list[tuple[str, str]] = field(default_factory=list)
    """Places in the file, and what the reader should know of them: comments that ignore nothing."""


class Checker:
    """A set of patterns that is applied to many texts."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        version: tuple[int, int] = VERSION,
        in_tests: bool = False,
        asked: Collection[str] | None = None,
        least: Confidence = "medium",
        is_pinned: bool = False,
        patience: float = PATIENCE,
        seldom: bool | None = None,
    ) -> None:
        """`asked`: full names of the patterns that the user named; they are reported with any confidence, and in code
        for TensorFlow 1 too. None for all. `least`: the confidence from which others are reported. `is_pinned`:
        whether the user or the project has named the version. `patience`: seconds of a processor for a file. `seldom`:
        whether patterns that matter seldom are reported with that confidence too; None: with all confidences only."""
        self.version = version
        self.in_tests = in_tests
        self.is_pinned = is_pinned
        self._patience = patience
        self._asked = frozenset(item.full_name for item in patterns) if asked is None else frozenset(asked)
        self._least = LEVELS.index(least)
        self._seldom = self._least == 0 if seldom is None else seldom
        self._patterns = Prefilter(patterns)
        for_tests = [item for item in patterns if item.in_tests]
        self._for_tests = Prefilter(for_tests)
        self._tests_matter = in_tests or self._least == 0 or any(item.full_name in self._asked for item in for_tests)
        """Whether anything would be reported in a file of tests."""

    def check(self, text: str, path: str = "", pinned: tuple[int, int] | None = None) -> Outcome:
        """`pinned`: the TensorFlow that the project around the file asks for, where the checker has no version."""
        outcome = Outcome(lines=text.count("\n") + 1)
        of_test = is_test(path)
        may_matter = self._tests_matter or not of_test
        words_present = words_in(text) if may_matter and any(name in text for name in _IN_PACKAGES) else set()
        relevant = not words_present.isdisjoint(_PACKAGES)
        version = self.version if self.is_pinned or pinned is None else pinned
        outcome.relevant = relevant and not of_test
        tests = of_test and not self.in_tests
        of_one = relevant and (version < (2, 0) or is_version_one(text, words_present))
        outcome.version_one = of_one and not tests
        if outcome.relevant:
            outcome.fails_with_two = outcome.version_one and fails_with_two(text, words_present)
            outcome.imports = imported_modules(text)
        active = self._active(text, path, version, words_present, of_one) if relevant else []
        outcome.version_two = relevant and not of_one and is_version_two(text, words_present)
        traces = relevant and not tests and not words_present.isdisjoint(_TRACERS)
        # Thousands of nodes are made and none is garbage: collecting meanwhile takes a third of the time.
        collecting = gc.isenabled()
        gc.disable()
        module = None
        try:
            if not active and not traces:
                parses(text)  # a syntax error is reported in any file
                return outcome
            module = Module(text, path, version, self.is_pinned or pinned is not None)
            if module.names.imports_any("tensorflow", "keras", "tf_keras", "tf_slim"):
                active = [item for item in active if self._is_often_in(module, item)]
                self._run(module, active, words_present, outcome)
                if traces:
                    known = traced(module)
                    outcome.traced = sorted(known.wrapped | known.called)
        except SyntaxError as error:
            outcome.problem = f"line {error.lineno or 1}: not valid Python: {error.msg}"
        except (RecursionError, MemoryError):
            outcome.problem = "nested too deeply"
        except ValueError as error:  # null bytes
            outcome.problem = f"not valid Python: {error}"
        finally:
            if module is not None:
                module.release()
            if collecting:
                gc.enable()
        return outcome

    def _run(self, module: Module, active: Sequence[Pattern], present: set[bytes], outcome: Outcome) -> None:
        if not active:
            return
        by_call: dict[str, list[Pattern]] = {}
        by_node: dict[type[ast.AST], list[Pattern]] = {}
        words: set[str] = set()
        for item in active:
            words |= item.words
            for name in item.calls:
                by_call.setdefault(name, []).append(item)
            for kind in item.nodes:
                by_node.setdefault(kind, []).append(item)
        lines = _lines_with(module.text, [word for word in words if word.encode() in present])
        seen: list[tuple[Pattern, Match, Site]] = []
        end = time.process_time() + self._patience
        for item, node, site in _candidates(module, lines, by_call, by_node):
            if time.process_time() > end:
                outcome.problem = f"line {site.line}: is checked no further: the file takes too long"
                break
            _detect(item, node, site, seen, outcome)
        suppressed = Suppressions(module.text)
        outcome.remarks = [(str(line), text) for line, text in suppressed.mistakes]
        # Two detectors may find the same fault: it is reported once.
        found = {_key(item): item for item in (_diagnostic(module, *what) for what in seen)}
        outcome.diagnostics = [item for item in found.values() if self._is_shown(item) and not suppressed.covers(item)]
        outcome.diagnostics.sort(key=lambda item: (item.line, item.column, item.cause, item.pattern))

    def _active(self, text: str, path: str, version: tuple[int, int], words: set[bytes], of_one: bool) -> list[Pattern]:
        """The patterns that may find something in the text which would be reported."""
        chosen = self._for_tests if is_test(path) and not self.in_tests else self._patterns
        active = chosen.by_words(words)
        if of_one:
            active = [item for item in active if item.full_name in self._asked]
        active = self._that_show(active, path, text, version)
        if active:
            code = Code(text, words)
            if any(code.may_have(item) for item in active):
                return active  # one is enough to parse it; to leave the others out saves no time
        return []

    def _that_show(self, patterns: list[Pattern], path: str, text: str, version: tuple[int, int]) -> list[Pattern]:
        """Those of which a finding would be reported: not where all are of too little confidence."""
        if not patterns or (self._least == 0 and self._seldom):
            return patterns
        if consequence.is_aside(path, text):
            return [item for item in patterns if item.full_name in self._asked]
        return [item for item in patterns if item.full_name in self._asked or self._may_show(item, version)]

    def _may_show(self, item: Pattern, version: tuple[int, int]) -> bool:
        if (item.seldom and not self._seldom) or (not item.default and (0, 0) < item.default_below <= version):
            return False
        return LEVELS.index(item.most) >= self._least

    def _is_often_in(self, module: Module, item: Pattern) -> bool:
        return self._seldom or item.full_name in self._asked or item.often_in is None or item.often_in(module)

    def _is_shown(self, item: Diagnostic) -> bool:
        return item.full_name in self._asked or LEVELS.index(item.confidence) >= self._least


def _candidates(
    module: Module,
    lines: list[int],
    by_call: dict[str, list[Pattern]],
    by_node: dict[type[ast.AST], list[Pattern]],
) -> Iterator[tuple[Pattern, ast.AST, Site]]:
    """The nodes that patterns asked for, in scopes that have one of the lines. Scopes are read on the way."""
    waiting: list[Scope] = [module.top]
    while waiting:
        scope = waiting.pop()
        first, last = scope.extent()
        index = bisect_left(lines, first)
        if index >= len(lines) or lines[index] > last:
            continue
        for call, site in scope.facts.calls:
            for item in by_call.get(last_name(call.func), ()):
                yield item, call, site
        if by_node:
            for node, site in scope.facts.others:
                for item in by_node.get(type(node), ()):
                    yield item, node, site
        waiting.extend(scope.children)


def _detect(
    item: Pattern, node: ast.AST, site: Site, seen: list[tuple[Pattern, Match, Site]], outcome: Outcome
) -> None:
    try:
        seen.extend((item, what, site) for what in item.detect(node, site))
    except RecursionError:
        raise
    except Exception as error:
        # An error in one detector must not stop the others, and must be reported.
        line = getattr(node, "lineno", 1)
        outcome.problem = f"line {line}: the check for {item.full_name} failed: {type(error).__name__}: {error}"


def drop_traced_elsewhere(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Remove diagnostics of functions that another file traces. Returns the names of all traced functions.

    No other file has the functions of a notebook."""
    outcomes = list(outcomes)
    names = frozenset(name for outcome in outcomes for name in outcome.traced)
    for outcome in outcomes:
        own = frozenset(outcome.traced)
        outcome.diagnostics = [
            item for item in outcome.diagnostics if item.unless_traced not in (names if item.cell is None else own)
        ]
    return names


def _lines_with(text: str, words: Iterable[str]) -> list[int]:
    """Numbers of the lines that contain one of the words, also as part of a longer word, in order."""
    content = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    offsets = []
    for word in words:
        offset = content.find(word)
        while offset >= 0:
            offsets.append(offset)
            offset = content.find(word, offset + len(word))
    offsets.sort()
    numbers: list[int] = []
    line, counted = 1, 0
    for offset in offsets:
        line += content.count("\n", counted, offset)
        counted = offset
        if not numbers or numbers[-1] != line:
            numbers.append(line)
    return numbers


def _diagnostic(module: Module, pattern: Pattern, match: Match, site: Site) -> Diagnostic:
    span = _span(module, match.report_at or match.node)
    changed = _span(module, match.node, whole=True) if match.repair is not None else (0, 0, 0, 0)
    code = module.lines[span[0] - 1].strip()[:300] if span[0] <= len(module.lines) else ""
    return Diagnostic(
        pattern.cause,
        pattern.name,
        *span,
        match.message,
        match.advice,
        match.equivalence,
        match.repair,
        changed,
        site.scope.name or None,
        code,
        match.unless_traced,
        confidence=consequence.confidence(match, site, pattern.cause in _of_input(), pattern.cause not in _FAILS),
    )


@lru_cache(maxsize=1)
def _of_input() -> frozenset[str]:
    """Names of the causes that lie in how the data comes."""
    return frozenset(
        name for name, entry in catalogue().items() if entry.spec.group == "input" or name == "legacy-pipeline"
    )


def _key(item: Diagnostic) -> tuple[object, ...]:
    return (item.line, item.column, item.cause, item.pattern, item.end_line, item.end_column)


def _span(module: Module, node: ast.AST, whole: bool = False) -> tuple[int, int, int, int]:
    """Line and column of both ends, from 1, columns in characters: ast counts bytes."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end_column = getattr(node, "end_col_offset", None) or column
    if isinstance(node, ast.Attribute) and not whole:
        # A chain of methods may begin far above: report the name of the last one.
        line, column = end_line, end_column - len(node.attr.encode())
    return line, _column(module, line, column), end_line, _column(module, end_line, end_column)


def _column(module: Module, line: int, offset: int) -> int:
    text = module.source_line(line)
    if text.isascii():
        return offset + 1
    return len(text.encode()[:offset].decode(errors="replace")) + 1


def with_cell(item: Diagnostic, cell: int, line: int) -> Diagnostic:
    """A diagnostic with its cell and its line in the cell."""
    shift = item.line - line
    return replace(item, cell=cell, line=line, end_line=item.end_line - shift)
