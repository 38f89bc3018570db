"""Applies repairs to one text until nothing changes. A result that does not parse is discarded.

libcst is slow, so only files with something to repair are read with it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import libcst as cst

from flatout.check import pins
from flatout.check.checker import Checker
from flatout.model.case import Case, Finding, Where
from flatout.source.analysis.patterns import Diagnostic
from flatout.source.editing import repairs, source_text
from flatout.source.editing.document import Document, read
from flatout.source.notebooks.text import NotANotebook, Notebook, to_bytes
from flatout.source.notebooks.text import read as read_notebook
from flatout.source.repairs import LeverEdit

ROUNDS = 12
_NEWLINE = re.compile(r"\r\n?|\n")


@dataclass
class RepairedContent:
    content: bytes
    applied: list[Diagnostic] = field(default_factory=list)


def fix(
    content: bytes, path: str, checker: Checker, wanted: Callable[[Diagnostic], bool], traced: Collection[str] = ()
) -> RepairedContent:
    """The content of a file with all wanted repairs made; unchanged if there are none.

    `traced` holds names of functions that other files trace.
    """
    book: Notebook | None = None
    try:
        if path.endswith(".ipynb"):
            book = read_notebook(content)
            text = book.text
        else:
            source = source_text.decode(content)
            text = source.text
    except (NotANotebook, SyntaxError, UnicodeError, LookupError):
        return RepairedContent(content)
    result, applied = _fix_text(text, path, checker, lambda item: wanted(item) and item.unless_traced not in traced)
    if result == text:
        return RepairedContent(content)
    if book is not None:
        return RepairedContent(to_bytes(book, result, content), applied)
    try:
        return RepairedContent(source.bytes_of(result), applied)
    except UnicodeError:
        return RepairedContent(content)


def _fix_text(
    text: str, path: str, checker: Checker, wanted: Callable[[Diagnostic], bool]
) -> tuple[str, list[Diagnostic]]:
    applied: list[Diagnostic] = []
    failed: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        todo = [
            item
            for item in checker.check(text, path, pins.oldest(os.path.dirname(path))).diagnostics
            if item.repair is not None and wanted(item) and (item.full_name, item.code) not in failed
        ]
        if not todo:
            break
        changed, done, tried = _round(text, path, todo)
        if changed is None and len(todo) > 1:
            changed, done, tried = _round(text, path, todo[:1])
        failed |= {(item.full_name, item.code) for item in tried if item not in done}
        if changed is None:
            failed.add((todo[0].full_name, todo[0].code))
            continue
        text = changed
        applied += done
    return text, applied


def _round(text: str, path: str, todo: list[Diagnostic]) -> tuple[str | None, list[Diagnostic], list[Diagnostic]]:
    """One round of repairs in different statements: the new text, the repairs made, and those that were tried."""
    document = read(text)
    if document is None:
        return None, [], []
    done: list[Diagnostic] = []
    tried: list[Diagnostic] = []
    taken: list[range] = []
    for item in todo:
        assert item.repair is not None
        change = item.repair.change
        if isinstance(change, LeverEdit):
            if done:
                continue
            changed = _edit_by_lever(text, path, item, change)
            if changed is not None and _parses(changed):
                return changed, [item], [item]
            tried.append(item)
            continue
        for node in _nodes_at(document, item.repair_span):
            lines = _lines(document, node)
            if any(lines.start < other.stop and other.start < lines.stop for other in taken):
                break
            tried.append(item)
            if repairs.apply(change, document, node):
                done.append(item)
                taken.append(lines)
                break
    changed = document.result() if done else None
    return (changed, done, tried) if changed is not None and _parses(changed) else (None, [], tried)


def _edit_by_lever(text: str, path: str, item: Diagnostic, change: LeverEdit) -> str | None:
    """The edit that `tune` writes for a lever. It gets the line in a case, as after a run."""
    from flatout.cures import edit_of, find

    edit = edit_of(find(change.lever))
    line = change.line or item.line
    case = Case("check", findings=(Finding(item.cause, item.message, Where(path, line)),))
    return edit(text, path, case, "") if edit is not None else None


def _nodes_at(document: Document, span: tuple[int, ...]) -> list[cst.CSTNode]:
    """The nodes at exactly this span: a call, and the statement that consists of the call."""
    starts = [0, *(match.end() for match in _NEWLINE.finditer(document.source))]
    begin = starts[span[0] - 1] + span[1] - 1
    end = starts[span[2] - 1] + span[3] - 1
    kinds = (cst.Call, cst.Expr, cst.Assign, cst.Attribute, cst.Name, cst.BinaryOperation)
    functions = [node for node in document.all(cst.FunctionDef) if document.span(node)[0] == begin]
    if functions:
        return list(functions)
    return [node for node in document.all(*kinds) if document.span(node) == (begin, end)]


def _lines(document: Document, node: cst.CSTNode) -> range:
    if isinstance(node, cst.FunctionDef):
        line = document.line(node)
        return range(line, line + 1)
    holder = next((item for item in (node, *document.around(node)) if isinstance(item, cst.SimpleStatementLine)), node)
    return document.lines(holder)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
