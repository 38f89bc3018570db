"""`background-checkpoint`: a subclass of ModelCheckpoint is added, and made in its place."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import imports, statements
from flatout.source.editing.document import Document, free, read

MARK = re.compile(r"^# ── from here on ─+\n+", re.MULTILINE)
MADE = "keras.callbacks.ModelCheckpoint"
MODULES = ("concurrent.futures", "os", "random")
CLASSES = ("BackgroundSaving", "BackgroundCheckpoint")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "ModelCheckpoint" in source and "distribute" not in source else None
    if document is None or any(free(document, name) != name for name in CLASSES):
        return None
    if any(binding.stands_for.split(".")[0] == "tf_keras" for binding in imports.bindings(document)):
        return None
    made = [call for call in document.all(cst.Call) if document.dotted(call.func) == MADE]
    last = imports.last_import(document)
    if not made or last is None:
        return None
    for call in made:
        document.replace(*document.span(call.func), CLASSES[1])
    _import(document)
    newline = document.newline
    text = re.sub(r"keras\.[A-Za-z_.]+\w", lambda found: imports.spell(document, found[0], made[0]), _text())
    at = document.next_line(document.span(last)[1])
    below = document.source[at:]
    blank = (len(below) - len(below.lstrip("\r\n"))) // len(newline)
    text = text.strip().replace("\n", newline)
    document.insert(at, f"{2 * newline}{text}{newline}{max(2 - blank, 0) * newline}")
    return document.result()


def _import(document: Document) -> None:
    """What the classes use of the standard library, as one block where the file has nothing of it."""
    bound = list(imports.bindings(document))
    known = {one.stands_for for one in bound if one.name == one.stands_for}
    wanted = [module for module in MODULES if module not in known]
    foreign = imports.first_foreign_import(document)
    if foreign is not None and not any(one.stands_for.split(".")[0] in sys.stdlib_module_names for one in bound):
        statements.before(document, foreign, *(f"import {module}" for module in wanted), "")
        return
    for module in wanted:
        imports.add_stdlib_import(document, module)


def _text() -> str:
    return MARK.split(Path(__file__).with_name("saving.py").read_text(encoding="utf-8"))[1]
