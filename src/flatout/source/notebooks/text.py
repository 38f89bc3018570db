"""Notebooks: their code cells as one text, with a mapping back to cells and lines, and back to the file."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from flatout.model.errors import Internal
from flatout.source.analysis.scopes import parses
from flatout.source.notebooks import cells as notebook_cells

_MAGIC = re.compile(r"^\s*(%|!|\?|(pip3?|conda) install |[\w.,= \[\]]+=\s*[%!])|^\s*[%\w.*]+\?{1,2}\s*$")
"""Lines that IPython alone understands: magics, shell commands, and `name?` for help."""
CELL_MAGIC = re.compile(r"^\s*%%(?!time\b|timeit\b|capture\b)")
_FUTURE = re.compile(r"from __future__ import ([\w, ]+?)\s*(?:#.*)?$")
MARK = "#flatout-cell "
ORIGINAL = "#flatout-kept "
"""How the comment begins that holds a line which is not Python."""


class NotANotebook(Internal):
    pass


@dataclass
class Notebook:
    text: str = ""
    """All code cells, each after a marker line. Lines that are not Python are kept in comments."""
    cells: list[int] = field(default_factory=list)
    """Numbers of the code cells, counted from 1 among all cells."""
    starts: list[int] = field(default_factory=list)
    """First line of each cell in the text."""
    broken: list[int] = field(default_factory=list)
    futures: set[str] = field(default_factory=set)
    """What cells import from `__future__`."""
    content: dict[str, Any] = field(default_factory=dict)
    language: str = "python"

    def place(self, line: int) -> tuple[int, int]:
        """The cell of a line of the text, and its line in that cell."""
        number = max(bisect_right(self.starts, line) - 1, 0)
        return self.cells[number], line - self.starts[number] + 1


Statement = Callable[[str, int], str]
"""Of a line that IPython alone understands, and its cell: what stands for it in Python."""


def _nothing(line: str, cell: int) -> str:
    return "pass"


def read(content: bytes, statement: Statement = _nothing) -> Notebook:
    try:
        data = json.loads(content)
        cells = data.get("cells") if isinstance(data, dict) else None
        if not isinstance(cells, list):
            raise NotANotebook("not a notebook: it has no list of cells")
        book = Notebook(content=data, language=_language(data.get("metadata")))
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"not a notebook: {error}") from None
    if book.language.lower() != "python":
        return book
    lines: list[str] = []
    for number, cell in enumerate(cells, start=1):
        source = source_of(cell)
        if source is None:
            continue
        lines.append(f"{MARK}{number}")
        book.cells.append(number)
        book.starts.append(len(lines) + 1)
        lines += _python(source, number, book, statement)
    book.text = "\n".join(lines) + "\n"
    return book


def _language(metadata: Any) -> str:
    """What its kernel speaks, or, where the kernel does not say so, what its cells were last run in."""
    kernel, info = (_object(_object(metadata).get(name)) for name in ("kernelspec", "language_info"))
    return str(kernel.get("language") or info.get("name") or "python")


def _object(value: Any) -> dict[str, Any]:
    """What is null in some notebooks is as good as not there."""
    return value if isinstance(value, dict) else {}


def source_of(cell: Any) -> str | None:
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(str(part) for part in source)
    return source if isinstance(source, str) else None


def _python(source: str, number: int, book: Notebook, statement: Statement) -> list[str]:
    lines = source.split("\n")
    if CELL_MAGIC.match(source):
        return [f"{statement(source, number)}  {ORIGINAL}{lines[0]}", *(ORIGINAL + line for line in lines[1:])]
    if _is_python(source):
        return [_without_future(line, book) for line in lines]
    converted = _converted(lines, number, statement)
    if not _is_python("\n".join(converted)):
        book.broken.append(number)
        return [ORIGINAL + line for line in lines]
    return [_without_future(line, book) for line in converted]


def _is_python(source: str) -> bool:
    try:
        parses(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _converted(lines: list[str], number: int, statement: Statement) -> list[str]:
    """Magic lines as statements that keep them in a comment; a shell command may go on in the next lines."""
    converted: list[str] = []
    command: list[str] = []
    for line in lines:
        if command:
            command.append(line)
            converted.append(ORIGINAL + line)
        elif _MAGIC.search(line) is None or line.lstrip().startswith("#"):
            converted.append(line)
            continue
        else:
            command = [line]
            converted.append("")
        if not line.rstrip().endswith("\\"):
            first = command[0]
            indent = first[: len(first) - len(first.lstrip())]
            whole = " ".join(part.strip().removesuffix("\\").strip() for part in command)
            converted[-len(command)] = f"{indent}{statement(whole, number)}  {ORIGINAL}{first}"
            command = []
    if command:
        converted[-len(command)] = f"pass  {ORIGINAL}{command[0]}"
    return converted


def _without_future(line: str, book: Notebook) -> str:
    """`from __future__ import …` has to stand first: its names are kept for that."""
    found = _FUTURE.match(line)
    if found is None:
        return line
    book.futures.update(name.strip() for name in found.group(1).split(","))
    return f"pass  {ORIGINAL}{line}"


def to_bytes(book: Notebook, text: str, before: bytes, begin: str = "") -> bytes:
    """The notebook's file with the cells of a changed text. Everything else stays.

    `begin`: what stood before the first cell. What was added there, imports as a rule, comes into that cell.
    """
    cells: dict[int, list[str]] = {}
    top: list[str] = []
    current = top
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith(MARK):
            current = cells.setdefault(int(line[len(MARK) :]), [])
        else:
            kept = line.find(ORIGINAL)
            current.append(line[kept + len(ORIGINAL) :] if kept >= 0 else line)
    _come_first(_added(begin.removesuffix("\n").split("\n") if begin else [], top), cells)
    _to_where_it_is_used(book, cells)
    try:
        before_text = before.decode("utf-8-sig" if before.startswith(b"\xef\xbb\xbf") else "utf-8")
        spans = notebook_cells.source_spans(before_text)
    except (UnicodeDecodeError, notebook_cells.NotFound):
        return before  # laid out in a way that cannot be edited cell by cell
    edits: list[tuple[int, int, str]] = []
    for number, lines in cells.items():
        cell = book.content["cells"][number - 1]
        source = "\n".join(lines)
        if source == source_of(cell):
            continue
        if number not in spans:
            return before
        start, end = spans[number]
        old = before_text[start:end]
        edits.append((start, end, notebook_cells.written(old, _same_form(cell["source"], source), _ascii(old))))
    after = before_text
    for start, end, new in sorted(edits, reverse=True):
        after = after[:start] + new + after[end:]
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    return mark + after.encode("utf-8")


def _added(before: list[str], after: list[str]) -> list[str]:
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    lines = [line for kind, _, _, start, end in changes if kind in ("insert", "replace") for line in after[start:end]]
    while lines and not lines[-1].strip():
        del lines[-1]
    return lines


def _come_first(lines: list[str], cells: dict[int, list[str]]) -> None:
    """In the first cell that is Python, behind what has to stand first there."""
    if not lines:
        return
    cell = next((one for one in cells.values() if any(one) and not CELL_MAGIC.match("\n".join(one))), None)
    if cell is not None:
        _insert(lines, cell)


def _insert(lines: list[str], cell: list[str]) -> None:
    ahead = [place for place, line in enumerate(cell, 1) if line.startswith("%%") or _FUTURE.match(line)]
    place = max(ahead, default=0)
    cell[place:place] = lines


def _to_where_it_is_used(book: Notebook, cells: dict[int, list[str]]) -> None:
    """What was added at the end of a cell comes into the next one, if that was changed as well.

    An edit writes above a statement, and so above the mark between two cells. The cell before goes on showing the
    value of its last line.
    """
    for number, following in pairwise(list(cells)):
        old = (source_of(book.content["cells"][number - 1]) or "").split("\n")
        used_in = (source_of(book.content["cells"][following - 1]) or "").split("\n")
        if cells[number][: len(old)] != old or cells[following] == used_in:
            continue
        added = cells[number][len(old) :]
        while added and not added[0].strip():
            del added[0]
        if added and not CELL_MAGIC.match(cells[following][0]):
            cells[number] = old
            _insert(added, cells[following])


def _ascii(old: str) -> bool:
    """Whether a cell's other characters are written as escapes."""
    return old.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", old) is not None


def _same_form(before: Any, source: str) -> Any:
    """A cell's source in its original form: one text, or a list of lines, perhaps with an empty one at the end."""
    if not isinstance(before, list):
        return source
    lines: list[str] = source.splitlines(keepends=True)
    return [*lines, ""] if before[-1:] == [""] and source.endswith("\n") else lines
