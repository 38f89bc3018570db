"""`scripts/test --processor-time`: what files and tests take of the processors, with the processes that they start.

Unlike durations, this hardly depends on what else runs on the machine. Processes that outlive their test count nowhere,
unless who starts them tells (`elsewhere`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

PROPERTY = "processor seconds"
SHOWN = 40


elsewhere: list[float] = []
"""Seconds of processes that were waited for by another one."""


def used() -> float:
    """Seconds of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + sum(elsewhere)


class ProcessorTime:
    """In the process that runs a test it is taken; in the one that reports, summed up by file."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from _taken(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from _taken(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from _taken(item))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            seconds = sum(value for name, value in report.user_properties if name == PROPERTY)
            self.files[report.location[0]] += seconds
            self.tests[report.nodeid] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time")
        for name, seconds in [*self.tests.most_common(SHOWN), *self.files.most_common(SHOWN)]:
            terminalreporter.write_line(f"{seconds:8.1f} s  {name}")
        terminalreporter.write_line(f"{sum(self.files.values()):8.1f} s  all {len(self.files)} files")


def _taken(item: pytest.Item) -> Generator[None, Any, Any]:
    before = used()
    try:
        return (yield)
    finally:
        item.user_properties.append((PROPERTY, used() - before))
