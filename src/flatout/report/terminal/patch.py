"""The whole patch. `flatout show --view patch` into a pipe gives it byte for byte, for `patch` or `git apply`."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.model.text import LONGEST, clean_code
from flatout.report.formatting import elide
from flatout.report.terminal.page import Page


def has_data(case: Case) -> bool:
    return bool(case.patch)


def write(case: Case, page: Page, directory: Path | None) -> None:
    for row in case.patch.splitlines():
        page.code(elide(clean_code(row), LONGEST), indent=0)
    if not case.patch:
        page.missing("No patch is in this case.", "`flatout tune PROGRAM` writes one where an edit of the source pays.")
