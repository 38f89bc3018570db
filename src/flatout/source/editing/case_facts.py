"""What the case of the observed run contains about one file."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from flatout.model.case import Case, Function, Where
from flatout.model.evidence.steps import StepStack


def same_file(path: str, other: str | None) -> bool:
    return other is not None and (path == other or _real(path) == _real(other))


@functools.lru_cache(maxsize=4096)
def _real(path: str) -> str:
    return os.path.realpath(path)


def lines(case: Case, path: str, *causes: str) -> list[int]:
    """Lines of this file in findings with these causes."""
    return [
        finding.where.line
        for finding in case.findings
        if finding.cause in causes and _in(finding.where, path) and finding.where is not None and finding.where.line
    ]


def functions(case: Case, path: str) -> Iterator[Function]:
    """tf.functions that are defined in this file."""
    return (function for function in case.functions if _in(function.where, path))


def steps(case: Case) -> Iterator[StepStack]:
    """Where steps were called from, beginning with the step that is reported."""
    where = case.steps.where if case.steps is not None else None
    return iter(sorted(case.evidence_of(StepStack), key=lambda item: item.where != where))


def step_lines(case: Case, path: str) -> set[int]:
    """Lines of this file that steps were called from."""
    return {item.where.line for item in steps(case) if _in(item.where, path) and item.where and item.where.line}


def main_file(case: Case) -> str | None:
    """The program itself: the outermost frame of a step, else the file on the command line."""
    for item in steps(case):
        if item.stack:
            return item.stack[-1].file
    for word in case.program.command[1:]:
        if word.endswith(".py"):
            return os.path.normpath(os.path.join(case.program.directory, word))
        if not word.startswith("-"):
            break
    return case.steps.where.file if case.steps is not None and case.steps.where is not None else None


def is_main(case: Case, path: str) -> bool:
    return same_file(path, main_file(case))


def step_functions(case: Case, path: str) -> list[Function]:
    """The tf.functions of this file that are a step by themselves; empty for `fit`."""
    names = {item.name for item in case.evidence_of(StepStack) if item.step in ("train-function", "function")}
    return [function for function in functions(case, path) if function.name in names]


def _in(where: Where | None, path: str) -> bool:
    return where is not None and same_file(path, where.file)
