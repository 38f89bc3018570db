"""Whole statements: inserts and deletes them, with their comments and blank lines."""

from __future__ import annotations

import libcst as cst

from flatout.source.editing.document import Document

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
    index = row.index(statement) + 1
    return row[index] if index < len(row) else None


def after(document: Document, statement: cst.CSTNode, *lines: str) -> None:
    """Insert lines below a statement, with its indentation."""
    _, end = document.span(statement)
    indentation = document.indentation(_start(document, statement))
    here = document.next_line(end)
    missing = here == len(document.source) and here == document.line_end(end)
    text = "".join(f"{indentation}{line}{document.newline}" if line else document.newline for line in lines)
    document.insert(here, document.newline + text[: -len(document.newline)] if missing else text)


def before(document: Document, statement: cst.CSTNode, *lines: str) -> None:
    """Insert lines above a statement, its decorators and its comments."""
    indentation = document.indentation(_start(document, statement))
    text = "".join(f"{indentation}{line}{document.newline}" if line else document.newline for line in lines)
    document.insert(_place_above(document, statement), text)


def define(document: Document, statement: cst.CSTNode, *lines: str, blanks: int = 2) -> None:
    """Insert functions above a statement and its comments, with so many blank lines around them."""
    rows = document.source[: _place_above(document, statement)].split(document.newline)[:-1]
    there = 0
    while rows and not rows[-1].strip():
        rows.pop()
        there += 1
    # Nothing is needed at the top of a file or of a block.
    opens = not rows or (blanks < 2 and rows[-1].rstrip().endswith(":"))
    before(document, statement, *[""] * (0 if opens else max(blanks - there, 0)), *lines, *[""] * blanks)


def _place_above(document: Document, statement: cst.CSTNode) -> int:
    start = _start(document, statement)
    indentation = document.indentation(start)
    here = above = document.line_start(start)
    while above > 0 and document.source[document.line_start(above - 1) : above].startswith(f"{indentation}#"):
        above = document.line_start(above - 1)
    # Comments at the top of a file are its interpreter, encoding or licence, not the statement's.
    return above if above > 0 else here


def _start(document: Document, statement: cst.CSTNode) -> int:
    decorators = getattr(statement, "decorators", ())
    return document.span(decorators[0] if decorators else statement)[0]


def delete(document: Document, *smalls: cst.BaseSmallStatement) -> None:
    """Delete statements with their comments. A block that would be empty gets a `pass`."""
    whole: list[cst.SimpleStatementLine] = []
    for small in smalls:
        line = document.parent(small)
        if isinstance(line, cst.SimpleStatementSuite) and len(line.body) == 1:
            document.replace(document.span(small)[0], document.line_end(document.span(small)[1]), "pass")
        elif isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            whole.append(line)
        elif isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            _delete_part(document, line, small)
    for run in _runs(document, sorted(whole, key=document.line)):
        _delete_run(document, run)


def _delete_part(
    document: Document, line: cst.SimpleStatementLine | cst.SimpleStatementSuite, small: cst.BaseSmallStatement
) -> None:
    """One of `a; b`."""
    index = list(line.body).index(small)
    start, end = document.span(small)
    if index + 1 < len(line.body):
        document.replace(start, document.span(line.body[index + 1])[0], "")
    else:
        document.replace(document.span(line.body[index - 1])[1], end, "")


def _runs(document: Document, lines: list[cst.SimpleStatementLine]) -> list[list[cst.SimpleStatementLine]]:
    """Groups of consecutive statements, which are deleted together with the blank lines around them."""
    runs: list[list[cst.SimpleStatementLine]] = []
    for line in lines:
        before = runs[-1][-1] if runs else None
        if before is not None and following(document, before) is line and not _between(document, before, line):
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _between(document: Document, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether there is a comment between two statements."""
    gap = document.source[document.next_line(document.span(first)[1]) : document.line_start(document.span(second)[0])]
    return bool(gap.strip())


def _delete_run(document: Document, run: list[cst.SimpleStatementLine]) -> None:
    block = document.parent(run[0])
    start, end = document.span(run[0])[0], document.span(run[-1])[1]
    if isinstance(block, cst.IndentedBlock) and len(block.body) == len(run):
        document.replace(start, document.line_end(end), "pass")
        return
    _delete_lines(document, document.line_start(start), document.next_line(end), isinstance(block, cst.Module))


def _delete_lines(document: Document, start: int, end: int, top: bool) -> None:
    """Delete lines with the smaller of the two groups of blank lines around them, which would otherwise join."""
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
