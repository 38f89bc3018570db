"""Classes that an edit adds to a file: below its imports, with what they use of the standard library."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from flatout.source.editing import imports, statements
from flatout.source.editing.document import Document

MARK = re.compile(r"^# ── from here on ─+\n+", re.MULTILINE)


def below_mark(module: Path) -> str:
    """The part of a module of flatout that is written into programs."""
    return MARK.split(module.read_text(encoding="utf-8"))[1].strip()


def add(document: Document, text: str, modules: Sequence[str]) -> None:
    """Puts the text below the imports of a file that has some. `modules`: of the standard library."""
    last = imports.last_import(document)
    assert last is not None
    _import(document, modules)
    newline = document.newline
    at = document.next_line(document.span(last)[1])
    below = document.source[at:]
    blank = (len(below) - len(below.lstrip("\r\n"))) // len(newline)
    text = text.replace("\n", newline)
    document.insert(at, f"{2 * newline}{text}{newline}{max(2 - blank, 0) * newline}")


def _import(document: Document, modules: Sequence[str]) -> None:
    """As one block where the file has nothing of the standard library."""
    bound = list(imports.bindings(document))
    known = {one.stands_for for one in bound if one.name == one.stands_for}
    wanted = [module for module in modules if module not in known]
    foreign = imports.first_foreign_import(document)
    if foreign is not None and not any(one.stands_for.split(".")[0] in sys.stdlib_module_names for one in bound):
        statements.before(document, foreign, *(f"import {module}" for module in wanted), "")
        return
    for module in wanted:
        imports.add_stdlib_import(document, module)


def can_add(document: Document, *names: str) -> bool:
    """Whether the file has imports, and none of these names."""
    taken = {node.value for node in document.all(cst.Name)}
    return imports.last_import(document) is not None and taken.isdisjoint(names)
