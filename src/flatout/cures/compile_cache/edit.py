"""`compile-cache`: a function that switches the cache on, called above the imports of other packages."""

from __future__ import annotations

import re
from pathlib import Path

import libcst as cst

from flatout.cures.compile_cache import FLAGS
from flatout.model.case import Case
from flatout.source.editing import case_facts, imports, source_text, statements
from flatout.source.editing.document import Document, free, read

MARK = re.compile(r"^# ── from here on ─+\n+", re.MULTILINE)
NAME = "keep_compiled"


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """Left alone: a program that sets these flags itself."""
    document = read(source) if FLAGS not in source and case_facts.is_main(case, path) else None
    first = imports.first_foreign_import(document) if document is not None else None
    if document is None or first is None or free(document, NAME) != NAME:
        return None
    lines = MARK.split(Path(__file__).with_name("keeping.py").read_text(encoding="utf-8"))[1].strip().splitlines()
    statements.before(document, first, *[""] * _missing(document, first), *lines, "", "", f"{NAME}()", "")
    return document.result()


def _missing(document: Document, first: cst.CSTNode) -> int:
    """Blank lines that are to come before the function."""
    rows = source_text.lines(document.source[: document.span(first)[0]])
    while rows and rows[-1].startswith("#"):
        rows.pop()
    above = len(rows)
    while rows and not rows[-1].strip():
        rows.pop()
    return max(2 - (above - len(rows)), 0) if rows else 0
