"""All of a run or a tune: what the overview tells in one screen, with the evidence, every trial and every note."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.report.terminal import overview, trials
from flatout.report.terminal.page import Page


def has_data(case: Case) -> bool:
    return case.kind in overview.SCREENS


def write(case: Case, page: Page, directory: Path | None) -> None:
    if case.kind == "tune":
        trials.write(case, page, directory)
    else:
        overview.details(case, page, directory)
