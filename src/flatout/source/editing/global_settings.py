"""Statements that set something for the whole program, right after its imports."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, imports, statements
from flatout.source.editing.document import Document, read

_POLICIES = (
    "keras.mixed_precision.set_global_policy",
    "keras.mixed_precision.set_dtype_policy",
    "keras.config.set_dtype_policy",
)


def set_policy(source: str, path: str, case: Case, policy: str) -> str | None:
    """`keras.mixed_precision.set_global_policy("…")` in the program's main file, unless it sets one itself."""
    document = read(source) if case_facts.is_main(case, path) else None
    if document is None or any(document.dotted(call.func) in _POLICIES for call in document.all(cst.Call)):
        return None
    spelled = imports.spell(document, _POLICIES[0])
    line = f"{spelled}({quoted(document, policy)})"
    cleared = [
        statement
        for statement in document.all(cst.Expr)
        if isinstance(statement.value, cst.Call)
        and document.dotted(statement.value.func) in ("keras.backend.clear_session", "keras.utils.clear_session")
    ]
    for statement in cleared:  # clearing the session forgets the policy
        holder = statements.holding(document, statement)
        if holder is not None:
            statements.after(document, holder, line)
    after_imports(document, line)
    for layer in _last_layers(document):
        if calls.keyword(layer, "dtype") is None and not calls.takes_unknown(layer):
            calls.add(document, layer, f"dtype={quoted(document, 'float32')}")
    return document.result()


def _last_layers(document: Document) -> list[cst.Call]:
    """The output layers of `Sequential([…])` and of `Model(inputs, Dense(1)(x))`: losses need float32."""
    found: list[cst.CSTNode] = []
    for call in document.all(cst.Call):
        name = document.dotted(call.func)
        if name in ("keras.Sequential", "keras.models.Sequential") and call.args:
            layers = call.args[0].value
            found += [layers.elements[-1].value] if isinstance(layers, cst.List) and layers.elements else []
        elif name in ("keras.Model", "keras.models.Model") and (outputs := _outputs(call)) is not None:
            found += [outputs.func] if isinstance(outputs, cst.Call) else []
    return [
        node for node in found if isinstance(node, cst.Call) and document.dotted(node.func).startswith("keras.layers.")
    ]


def _outputs(call: cst.Call) -> cst.CSTNode | None:
    given = calls.keyword(call, "outputs") or (call.args[1] if len(call.args) > 1 else None)
    return given.value if given is not None else None


def quoted(document: Document, text: str) -> str:
    """A string literal with the quotes that the file uses most."""
    single, double = document.source.count("'"), document.source.count('"')
    return f"'{text}'" if single > double else f'"{text}"'


def after_imports(document: Document, line: str) -> None:
    last = imports.last_import(document)
    if last is None:
        imports.add_import(document, line)
        return
    below = statements.following(document, last)
    start = document.span(below)[0] if below is not None else len(document.source)
    gap = document.source[document.next_line(document.span(last)[1]) : start]
    lines = ["", line]
    if below is not None and gap.lstrip(" \t")[:1] not in ("\n", "\r"):
        lines.append("")  # the code begins right below the imports
    statements.after(document, last, *lines)
