"""`mix-weights`: copies and mixtures of weights become assignments in one traced function."""

from __future__ import annotations

import ast

from flatout.cures.mix_weights import OFTEN
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine
from flatout.source.editing import case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.weight_mixing import Group, Mixing, groups


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    lines = {
        item.where.line
        for item in case.evidence_of(EagerLine)
        if item.of in ("get-weights", "set-weights", "assign") and item.calls >= OFTEN
        if item.where is not None and item.where.line and case_facts.same_file(path, item.where.file)
    }
    document = read(source) if lines else None
    if document is None:
        return None
    chosen = [group for group in groups(ast.parse(source)) if lines & set(_lines(group)) and _is_whole(document, group)]
    if not chosen:
        return None
    names: dict[tuple[str, bool], str] = {}
    for group in chosen:
        start, end = document.offset(group.first.lineno), _end(document, group)
        indentation = document.indentation(start)
        rows = [f"{indentation}{_call(document, names, mixing)}" for mixing in group.mixings]
        document.replace(start, end, document.newline.join(rows))
    _define(document, names, min(group.first.lineno for group in chosen))
    return document.result()


def _lines(group: Group) -> range:
    return range(group.first.lineno, (group.last.end_lineno or group.last.lineno) + 1)


def _end(document: Document, group: Group) -> int:
    """Where its last statement ends; `ast` counts columns in bytes."""
    start = document.offset(_lines(group)[-1])
    row = document.source[start : document.line_end(start)].encode()
    return start + len(row[: group.last.end_col_offset].decode())


def _is_whole(document: Document, group: Group) -> bool:
    """Whether its lines hold nothing else: no `if x: …` in front, nothing behind a semicolon, not traced already."""
    start = document.offset(group.first.lineno)
    if document.source[start : start + group.first.col_offset].strip():
        return False
    end = _end(document, group)
    behind = document.source[end : document.line_end(end)].strip()
    return not behind or behind.startswith("#")


def _call(document: Document, names: dict[tuple[str, bool], str], mixing: Mixing) -> str:
    key = (mixing.attribute, bool(mixing.share))
    if key not in names:
        wanted = "mix_weights" if mixing.share else "copy_weights"
        names[key] = free(document, wanted if wanted not in names.values() else f"{wanted}_{len(names) + 1}")
    share = f", {mixing.share}" if mixing.share else ""
    return f"{names[key]}({mixing.target}, {mixing.source}{share})"


def _define(document: Document, names: dict[tuple[str, bool], str], first: int) -> None:
    """The functions, above the statement of the module that the first copy is in."""
    outer = next(item for item in document.tree.body if first in document.lines(item))
    if not isinstance(outer, statements.WHOLE):
        return
    traced, indent = imports.spell(document, tf_functions.TRACED), document.indent
    rows: list[str] = []
    for (attribute, mixed), name in names.items():
        given = "target, source, share" if mixed else "target, source"
        value = "share * new + (1 - share) * old" if mixed else "new"
        rows += [
            f"@{traced}",
            f"def {name}({given}):",
            f"{indent}for old, new in zip(target.{attribute}, source.{attribute}):",
            f"{indent}{indent}old.assign({value})",
            "",
            "",
        ]
    statements.define(document, outer, *rows[:-2])
