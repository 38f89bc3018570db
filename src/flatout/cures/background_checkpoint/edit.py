"""`background-checkpoint`: a subclass of ModelCheckpoint is added, and made in its place."""

from __future__ import annotations

import re
from pathlib import Path

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import added_code, imports
from flatout.source.editing.document import read

MADE = "keras.callbacks.ModelCheckpoint"
MODULES = ("concurrent.futures", "os", "random")
CLASSES = ("BackgroundSaving", "BackgroundCheckpoint")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "ModelCheckpoint" in source and "distribute" not in source else None
    if document is None or not added_code.can_add(document, *CLASSES):
        return None
    if any(binding.stands_for.split(".")[0] == "tf_keras" for binding in imports.bindings(document)):
        return None
    made = [call for call in document.all(cst.Call) if document.dotted(call.func) == MADE]
    if not made:
        return None
    for call in made:
        document.replace(*document.span(call.func), CLASSES[1])
    text = added_code.below_mark(Path(__file__).with_name("saving.py"))
    text = re.sub(r"keras\.[A-Za-z_.]+\w", lambda found: imports.spell(document, found[0], made[0]), text)
    added_code.add(document, text, MODULES)
    return document.result()
