"""`background-figures`: a class is added, and `savefig` becomes a call of its object, where a loop or a function has
one. Those beside it as well: a figure that is drawn at once might be overwritten by one that waits."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from flatout.cures._keras_call_edits import defines
from flatout.model.case import Case
from flatout.source.editing import added_code, imports
from flatout.source.editing.document import FUNCTIONS, LOOPS, Document, free, read

PYPLOT = "matplotlib.pyplot.savefig"
MODULES = ("atexit", "collections", "concurrent.futures", "os", "pickle", "subprocess", "sys")
CLASS = "BackgroundFigures"


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "savefig" in source and "matplotlib" in source else None
    if document is None or not added_code.can_add(document, CLASS):
        return None
    if defines(case, source, "def savefig("):
        return None
    calls = [call for call in document.all(cst.Call) if _is_drawn(document, call)]
    if all(document.nearest(call, *FUNCTIONS, *LOOPS) is None for call in calls):
        return None
    name = free(document, "figures")
    for call in calls:
        assert isinstance(call.func, cst.Attribute)
        figure = document.text(call.func.value)
        if document.dotted(call.func) == PYPLOT:
            figure += ".gcf()"
        begin, end = document.span(call.func)
        opening = document.source.index("(", end) + 1
        document.replace(begin, opening, f"{name}.save({figure}{', ' if call.args else ''}")
    if not any((one.name, one.stands_for) == ("matplotlib", "matplotlib") for one in imports.bindings(document)):
        imports.add_import(document, "import matplotlib")
    text = added_code.below_mark(Path(__file__).with_name("drawing.py"))
    added_code.add(document, f"{text}\n\n\n{name} = {CLASS}()", MODULES)
    return document.result()


def _is_drawn(document: Document, call: cst.Call) -> bool:
    """Whether it draws a figure into a file, and nothing uses what it gives back."""
    function = call.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "savefig" or not call.args:
        return False
    return document.dotted(function) in (PYPLOT, "") and isinstance(document.parent(call), cst.Expr)
