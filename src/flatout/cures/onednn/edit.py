"""`onednn`: the variable that TensorFlow reads when it is imported, set before that import."""

from __future__ import annotations

import libcst as cst

from flatout.cures.onednn import VARIABLE
from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, imports, statements
from flatout.source.editing.document import Document, read
from flatout.source.editing.global_settings import quoted


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if case_facts.is_main(case, path) else None
    if document is None:
        return None
    wanted = value if value in ("0", "1") else "0"
    if VARIABLE in source:
        for assign in document.all(cst.Assign):
            written = document.text(assign.targets[0])
            if VARIABLE in written and calls.literal(assign.value) not in ("", repr(wanted)):
                document.replace(*document.span(assign.value), quoted(document, wanted))
        return document.result()
    first = imports.first_foreign_import(document)
    if first is None:
        return None
    if not _has_os(document, first):
        imports.add_stdlib_import(document, "os")
    setting = f"os.environ[{quoted(document, VARIABLE)}] = {quoted(document, wanted)}"
    statements.before(document, first, setting, "")
    return document.result()


def _has_os(document: Document, first: cst.CSTNode) -> bool:
    """Whether `os` is imported above."""
    here = document.span(first)[0]
    return any(
        binding.name == binding.stands_for == "os" and document.span(binding.node)[0] < here
        for binding in imports.bindings(document)
    )
