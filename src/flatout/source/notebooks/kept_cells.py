"""Cells of a notebook that a tune runs once: those whose first line is the comment `# flatout: keep`.

Here their source is read, in the program that stands for the notebook. Imports and definitions of such a cell run in
each trial; of all other statements the result may be kept (`trial/child/kept`).
"""

from __future__ import annotations

import ast
import dis
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from types import CodeType
from typing import Literal

from flatout.source.notebooks.text import MARK, ORIGINAL

_MARKED = re.compile(r"#\s*flatout:\s*keep\s*$")
_SETTING = re.compile(
    r"(mixed_precision\.set_(global|dtype)_policy|config\.set_dtype_policy|config\.threading\.set_\w+)$"
)
"""Settings of TensorFlow that a patch may add: a cell that TensorFlow computes nothing for has the same result."""
_BY_TEXT = frozenset(["globals", "locals", "vars", "dir", "eval", "exec", "get_ipython"])
"""Functions that reach names which the source does not show."""
_WHAT = re.compile(r"(LOAD|DELETE|STORE)_(SUPER_)?(?P<attribute>ATTR|METHOD)|(LOAD|DELETE)_\w*(NAME|GLOBAL|GLOBALS)")
"""Instructions that use attributes and names."""
_ADDED = "+"
"""How the digest of a statement begins that a patch may add."""

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Kind = Literal["import", "definition", "once"]
"""Of statements: all but those of the last kind run in each trial; settings go with definitions."""


@dataclass(frozen=True)
class KeptCell:
    number: int
    statements: tuple[ast.stmt, ...]
    before: tuple[ast.stmt, ...]
    """All that runs before it."""
    others: tuple[ast.stmt, ...]
    """Those of all other cells."""

    @property
    def groups(self) -> list[tuple[Kind, list[ast.stmt]]]:
        """Its statements in their order."""
        return [(kind, list(group)) for kind, group in groupby(self.statements, _kind)]

    @property
    def history(self) -> tuple[str, ...]:
        """A digest of each statement up to its end."""
        return tuple(map(_digest, (*self.before, *self.statements)))

    @property
    def bound(self) -> set[str]:
        """Names that it binds or deletes beside its imports and definitions."""
        return {name for one in self._once() for name in _bound(one)}

    @property
    def defined_with(self) -> set[str]:
        """Names that are read while its definitions are made: by decorators, defaults and bodies of classes."""
        again = (one for one in self.statements if runs_again(one))
        return {name for one in again for part in _evaluated(one) for name in _read(part)}

    @property
    def names(self) -> set[str]:
        """Names of the notebook that it reads, its functions included."""
        return {name for what, name in _uses(self.statements) if what == "name"}

    @property
    def attributes(self) -> set[str]:
        return {name for what, name in _uses(self.statements) if what == "attribute"}

    @property
    def by_text(self) -> bool:
        """Whether it may come to names that its source does not show."""
        return bool(self.names & _BY_TEXT)

    def read_elsewhere(self, names: Iterable[str]) -> set[str]:
        """Those of these names that something else in the notebook may read."""
        elsewhere = (*self.others, *(one for one in self.statements if runs_again(one)))
        read = {name for what, name in _uses(elsewhere) if what != "attribute"}
        return set(names) if read & _BY_TEXT else set(names) & read

    def _once(self) -> Iterator[ast.stmt]:
        return (one for one in self.statements if not runs_again(one))


@dataclass(frozen=True)
class Piece:
    """Statements that run together."""

    statements: tuple[ast.stmt, ...]
    kept: KeptCell | None = None
    """The cell that they are, where its result may be kept."""


def runs_again(statement: ast.stmt) -> bool:
    """Whether a statement of such a cell runs in each trial: what it makes is no data."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return bool(_SETTING.search(ast.unparse(statement.value.func)))
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, *Definition))


def _kind(statement: ast.stmt) -> Kind:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return "import"
    return "definition" if runs_again(statement) else "once"


def any_marked(text: str) -> bool:
    return bool(_marked(text.split("\n")))


def pieces(text: str, tree: ast.Module) -> list[Piece]:
    """A program that stands for a notebook, cut before and after each cell that is marked."""
    rows = text.split("\n")
    marked = _marked(rows)
    starts, numbers = _cells(rows)
    of_cell = [_cell_of(one, starts, numbers) for one in tree.body]
    found: list[Piece] = []
    at = 0
    for number, group in groupby(of_cell, lambda number: number if number in marked else None):
        size = len(list(group))
        body = tuple(tree.body[at : at + size])
        kept = None
        if number is not None and not all(map(runs_again, body)):
            cells = zip(tree.body, of_cell, strict=True)
            others = tuple(one for one, cell in cells if cell not in (None, number))
            kept = KeptCell(number, body, tuple(tree.body[:at]), others)
        found.append(Piece(body, kept))
        at += size
    return found


def still_holds(history: Sequence[str], now: Sequence[str]) -> bool:
    """Whether a program is up to here what it was, apart from imports and settings that a patch has added."""
    waiting = iter(history)
    expected = next(waiting, None)
    for digest in now:
        if digest == expected:
            expected = next(waiting, None)
        elif not digest.startswith(_ADDED):
            return False
    return expected is None


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cells(rows: Sequence[str]) -> tuple[list[int], list[int]]:
    """The lines, counted from 1, at which cells begin, and their numbers."""
    marks = [(line, row[len(MARK) :]) for line, row in enumerate(rows, start=1) if row.startswith(MARK)]
    return [line for line, text in marks if text.isdigit()], [int(text) for _, text in marks if text.isdigit()]


def _marked(rows: Sequence[str]) -> set[int]:
    starts, numbers = _cells(rows)
    ends = [*(start - 1 for start in starts[1:]), len(rows)]
    cells = zip(numbers, starts, ends, strict=True)
    return {number for number, start, end in cells if _is_marked(rows[start:end])}


def _is_marked(rows: Iterable[str]) -> bool:
    """A magic of the whole cell, as `%%time`, has to be its first line."""
    for row in rows:
        text = row.strip()
        if _MARKED.match(text):
            return True
        if text and not text.startswith("#") and not text.startswith(f"pass  {ORIGINAL}%%"):
            return False
    return False


def _cell_of(statement: ast.stmt, starts: Sequence[int], numbers: Sequence[int]) -> int | None:
    """None for what comes before the first cell."""
    decorators = getattr(statement, "decorator_list", [])
    line = min([statement.lineno, *(one.lineno for one in decorators)])
    place = bisect_right(starts, line) - 1
    return numbers[place] if place >= 0 else None


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _digest(statement: ast.stmt) -> str:
    digest = blake2b(ast.dump(statement).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    may_be_added = runs_again(statement) and not isinstance(statement, Definition)
    return f"{_ADDED}{digest}" if may_be_added else digest


def _uses(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names of the notebook that are read (`name`), `attribute`s, and words in texts (`text`), as in
    `frame.query("a > @limit")`. The compiler knows which names are those of a function alone."""
    waiting = [compile(ast.Module(list(statements), []), "", "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        for one in dis.get_instructions(code):
            what = _WHAT.fullmatch(one.opname)
            if what is not None:
                yield ("attribute" if what["attribute"] else "name"), str(one.argval)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                waiting.append(constant)
            elif isinstance(constant, (str, tuple, frozenset)):
                yield from (("text", word) for word in re.findall(r"\w+", str(constant)))


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (*Definition, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a definition that run when it is made."""
    if isinstance(statement, ast.ClassDef):
        yield from (*statement.decorator_list, *statement.bases, *statement.keywords)
        for one in statement.body:
            yield from _evaluated(one) if isinstance(one, Definition) else [one]
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = statement.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        yield from (*statement.decorator_list, *arguments.defaults)
        yield from (one for one in arguments.kw_defaults if one is not None)
        yield from (one.annotation for one in given if one is not None and one.annotation is not None)
        yield from [statement.returns] if statement.returns is not None else []
    else:
        yield statement


def _read(part: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
