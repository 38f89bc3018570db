"""`prepared-runs`: a subclass of the session is added to the file, and its sessions are made of that class."""

from __future__ import annotations

import libcst as cst

from flatout.cures._session_runs import reason_against
from flatout.cures.prepared_runs._session_class import NAME, TEMPLATE
from flatout.model.case import Case
from flatout.source.editing import imports, statements
from flatout.source.editing.document import Document, read
from flatout.source.editing.sessions import constructions


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if reason_against(case) is None else None
    if document is None or NAME in source:
        return None
    made = list(constructions(document))
    base = document.text(made[0].func) if made else ""
    last = _place(document, base.split(".")[0], made[0]) if made else None
    if last is None:
        return None
    package = base.rpartition(".")[0]
    operation = f"{package}.Operation" if package else imports.spell(document, "tensorflow.Operation")
    numpy, added = _numpy(document, last)
    text = TEMPLATE.format(name=NAME, base=base, operation=operation, np=numpy)
    lines = [line.replace("    ", document.indent) if line.startswith(" ") else line for line in text.splitlines()]
    statements.after(document, last, *added, "", "", *lines, *_space(document, last))
    for call in made:
        if document.text(call.func) == base:
            document.replace(*document.span(call.func), NAME)
    return document.result()


def _place(document: Document, name: str, first: cst.CSTNode) -> cst.CSTNode | None:
    """The import that the class goes below: the last one, or that of the name, above the first use of the class."""
    importing = next((found.node for found in imports.bindings(document) if found.name == name), None)
    if importing is None:
        return None
    above = document.span(importing)[1]
    top = next(item for item in document.around(importing) if item in document.tree.body)
    for place in (imports.last_import(document), top):
        if place is not None and above <= document.span(place)[1] < document.span(first)[0]:
            return place
    return None


def _numpy(document: Document, place: cst.CSTNode) -> tuple[str, tuple[str, ...]]:
    """How the file writes numpy, and the import that has to be added for it."""
    for binding in imports.bindings(document):
        if binding.stands_for == "numpy" and document.span(binding.node)[1] <= document.span(place)[1]:
            return binding.name, ()
    taken = {node.value for node in document.all(cst.Name)}
    return ("np", ("import numpy as np",)) if "np" not in taken else ("numpy", ("import numpy",))


def _space(document: Document, last: cst.CSTNode) -> tuple[str, ...]:
    """Blank lines below the class: two in all, with those that are there."""
    rest = document.source[document.next_line(document.span(last)[1]) :]
    there = len(rest) - len(rest.lstrip("\r\n"))
    return ("",) * max(2 - there, 0)
