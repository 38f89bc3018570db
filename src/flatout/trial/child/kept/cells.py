"""Runs a notebook's program piece by piece: a kept cell is watched in the scouting run, and left out in a trial.

What a trial leaves out is all but the cell's imports and definitions; what that has made is restored. The program has
to be what it was up to the cell, and to come to it with the same values; else the cell runs, and the trial says so.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from flatout.process.messages import decode, encode
from flatout.source.notebooks import kept_cells
from flatout.source.notebooks.kept_cells import KeptCell
from flatout.trial.child import seeds
from flatout.trial.child.kept import content, reach
from flatout.trial.child.kept.watch import Watch
from flatout.trial.messages import CellSeen, CellsSeen

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

DIRECTORY = "kept"
"""In that of the scouting run."""
FILE = "cells.json"
MOST_BYTES = 4 << 30
"""Of all cells together."""

Namespace = dict[str, Any]
Groups = Iterator[Sequence[ast.stmt]]
"""Statements, each of which are to run before the next ones are asked for."""


class Keeper(Protocol):
    def run(self, cell: KeptCell, namespace: Namespace) -> Groups: ...


_keeper: Keeper | None = None


def install(observer: Observer, kept: str) -> None:
    """From now on the program runs in pieces. `kept`: the directory to restore from; empty: cells are to be kept."""
    global _keeper
    _keeper = Restoring(observer, Path(kept)) if kept else Recording(observer)


def codes(text: bytes, path: str, namespace: Namespace) -> Iterator[CodeType]:
    """The program in pieces, each of which is to run in the namespace before the next one is asked for."""
    source = importlib.util.decode_source(text)
    tree = ast.parse(source, path)
    flags = _flags(tree)
    for piece in kept_cells.pieces(source, tree):
        whole: Groups = iter([piece.statements])
        groups = whole if _keeper is None or piece.kept is None else _keeper.run(piece.kept, namespace)
        yield from (_compiled(statements, path, flags) for statements in groups if statements)


def _flags(tree: ast.Module) -> int:
    """Of what the program imports from `__future__`: that holds for all of its pieces."""
    imports = (one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__")
    flags = 0
    for name in (alias.name for one in imports for alias in one.names):
        flags |= getattr(__future__, name).compiler_flag
    return flags


def _compiled(statements: Sequence[ast.stmt], path: str, flags: int) -> CodeType:
    first, body = statements[0], list(statements)
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body.insert(0, ast.copy_location(ast.Pass(), first))  # else it would be taken for the program's docstring
    made: CodeType = compile(ast.Module(body, []), path, "exec", flags=flags, dont_inherit=True)
    return made


# ── in the scouting run ──────────────────────────────────────────────────────────────────────────────────────────────


class Recording:
    def __init__(self, observer: Observer) -> None:
        self._spans = observer.spans
        self._directory = Path(observer.recorder.directory).absolute() / DIRECTORY
        self._seen: list[CellSeen] = []

    def run(self, cell: KeptCell, namespace: Namespace) -> Groups:
        with self._spans.of_flatout():
            watch = Watch(cell, namespace)
        for kind, statements in cell.groups:
            with self._spans.of_flatout():
                watch.before(kind)
            yield statements
            with self._spans.of_flatout():
                watch.after(kind)
        with self._spans.of_flatout(), contextlib.suppress(Exception):  # a cell that is not told of is not kept
            self._end(watch)

    def _end(self, watch: Watch) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        room = MOST_BYTES - sum(one.size for one in self._seen)
        self._seen.append(watch.end(self._directory / str(watch.cell.number), room))
        written = self._directory / f"{FILE}.new"
        written.write_text(encode(CellsSeen(tuple(self._seen))), encoding="ascii")
        os.replace(written, self._directory / FILE)


# ── in a trial ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Restoring:
    def __init__(self, observer: Observer, directory: Path) -> None:
        self._trial = observer.trial
        self._directory = directory
        seen = decode((directory / FILE).read_bytes(), CellsSeen).cells
        self._kept = {one.number: one for one in seen if not one.why_not}

    def run(self, cell: KeptCell, namespace: Namespace) -> Groups:
        seen = self._kept.get(cell.number)
        differs = _difference(cell, seen, namespace) if seen is not None else ""
        if seen is None or differs:
            self._trial.ran_kept = f"cell {cell.number}: {differs}" if differs else self._trial.ran_kept
            yield cell.statements
            return
        yield [one for one in cell.statements if kept_cells.runs_again(one)]
        found = content.restore(self._directory / str(cell.number))
        namespace.update(found["values"])
        for name in seen.deleted:
            namespace.pop(name, None)
        seeds.restore(found["random"])


def _difference(cell: KeptCell, seen: CellSeen, namespace: Namespace) -> str:
    """Why what was kept is not what the cell would make here; empty where it is."""
    if not kept_cells.still_holds(seen.history, cell.history):
        return "the program is another one up to its end"
    if cell.read_elsewhere(seen.left_out):
        return "the program reads more of what it makes"
    if reach.digests(reach.reached(cell.names, cell.attributes, namespace)) != seen.begins_with:
        return "it begins with other values"
    return ""
