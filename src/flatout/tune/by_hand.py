"""What to write by hand for a lever that has won and that no edit of this code can hold."""

from __future__ import annotations

import contextlib
import re

from flatout.cures import edit_of, find
from flatout.model.case import Case, Where
from flatout.model.levers import parse, shown


def by_hand(case: Case, lever: str) -> str:
    """One sentence that says why the patch lacks it, and what to write where."""
    name, value = parse(lever)
    cure = find(name)
    why = "has no edit" if edit_of(cure) is None else "finds no place for its edit in this code"
    told = ""
    with contextlib.suppress(Exception):  # the source may be written in any way
        told = cure.spec.by_hand(case, value) if cure.spec.by_hand is not None else ""
    told = told or _of_finding(case, name) or _of_page(cure.page) or cure.title
    return f"{shown([lever])} is not in the patch: it {why}. By hand: {told}"


def _of_finding(case: Case, name: str) -> str:
    """The advice of the finding that names the lever, with its line."""
    for finding in case.findings:
        for fix in finding.fixes:
            if fix.lever and parse(fix.lever)[0] == name:
                return f"{_place(finding.where)}{fix.advice}"
    return ""


def _place(where: Where | None) -> str:
    if where is None or not where.file:
        return ""
    line = f":{where.line}" if where.line else ""
    code = f" ({where.code.strip()})" if where.code else ""
    return f"{where.file}{line}{code}: "


def _of_page(page: str) -> str:
    """The lines under `In the source` of the cure's page."""
    match = re.search(r"## In the source\s+(?:```\w*\n)?(.*?)(?:```|\n## |\Z)", page, re.DOTALL)
    return " / ".join(line.strip() for line in match[1].splitlines() if line.strip())[:400] if match else ""
