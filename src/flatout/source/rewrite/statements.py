"""Whole statements: put one before or after another, or take one out without leaving a hole."""

from __future__ import annotations

import libcst as cst

from flatout.source.rewrite.document import Document

WHOLE = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


def holding(document: Document, node: cst.CSTNode) -> cst.CSTNode | None:
    """The statement that a node is part of."""
    return next((item for item in (node, *document.around(node)) if isinstance(item, WHOLE)), None)


def stands_alone(document: Document, statement: cst.CSTNode) -> bool:
    """Whether a statement has lines of its own: not `a; b`, not `if x: a`."""
    return (
        isinstance(statement, cst.BaseCompoundStatement)
        or (isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1)
    ) and document.begins_its_line(_start(document, statement))


def siblings(document: Document, statement: cst.CSTNode) -> list[cst.CSTNode]:
    """The statements of the block that a statement is in."""
    block = document.parent(statement)
    if isinstance(block, (cst.Module, cst.IndentedBlock)):
        return list(block.body)
    return [statement]


def following(document: Document, statement: cst.CSTNode) -> cst.CSTNode | None:
    row = siblings(document, statement)
    place = row.index(statement) + 1
    return row[place] if place < len(row) else None


def after(document: Document, statement: cst.CSTNode, *lines: str) -> None:
    """New lines below a statement, as deep as it stands."""
    _, end = document.span(statement)
    indentation = document.indentation(_start(document, statement))
    here = document.next_line(end)
    missing = here == len(document.source) and here == document.line_end(end)
    text = "".join(f"{indentation}{line}{document.newline}" if line else document.newline for line in lines)
    document.insert(here, document.newline + text[: -len(document.newline)] if missing else text)


def before(document: Document, statement: cst.CSTNode, *lines: str) -> None:
    """New lines above a statement and its decorators, below comments."""
    start = _start(document, statement)
    indentation = document.indentation(start)
    text = "".join(f"{indentation}{line}{document.newline}" if line else document.newline for line in lines)
    document.insert(document.line_start(start), text)


def _start(document: Document, statement: cst.CSTNode) -> int:
    decorators = getattr(statement, "decorators", ())
    return document.span(decorators[0] if decorators else statement)[0]


def delete(document: Document, small: cst.BaseSmallStatement) -> None:
    """Take a statement out with its comment. A block needs one: the last is replaced by `pass`."""
    line = document.parent(small)
    if not isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return
    start, end = document.span(small)
    if len(line.body) > 1:
        place = list(line.body).index(small)
        if place + 1 < len(line.body):
            document.replace(start, document.span(line.body[place + 1])[0], "")
        else:
            document.replace(document.span(line.body[place - 1])[1], end, "")
        return
    block = document.parent(line)
    alone = isinstance(line, cst.SimpleStatementSuite) or (
        isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    )
    if alone:
        document.replace(start, document.line_end(end), "pass")
        return
    _delete_lines(document, document.line_start(start), document.next_line(end), isinstance(block, cst.Module))


def _delete_lines(document: Document, start: int, end: int, top: bool) -> None:
    """With the smaller of the two groups of blank lines around, which would otherwise run together."""
    above, below = start, end
    while above > 0:
        previous = document.line_start(above - 1)
        if document.source[previous:above].strip():
            break
        above = previous
    while below < len(document.source):
        following = document.next_line(below)
        if document.source[below:following].strip():
            break
        below = following
    blanks_above = document.source.count("\n", above, start)
    blanks_below = document.source.count("\n", end, below)
    opens = above == start and not top and document.source[:start].rstrip().endswith(":")
    if below == len(document.source) and blanks_above and blanks_below == 0:
        start = above  # the last lines of the file
    elif opens or (blanks_above and blanks_below and blanks_below <= blanks_above):
        end = below
    elif blanks_above and blanks_below:
        start = above
    document.replace(start, end, "")
