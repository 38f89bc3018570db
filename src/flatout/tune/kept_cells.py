"""Cells of a notebook that a tune runs once (`# flatout: keep`): what its scouting run has made of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from flatout.model.case import Note
from flatout.model.errors import InvalidMessage
from flatout.model.text import clean
from flatout.process.messages import decode
from flatout.report.formatting import size
from flatout.source.notebooks import kept_cells
from flatout.source.notebooks.program import is_notebook, program_of
from flatout.trial.child.kept.cells import DIRECTORY, FILE
from flatout.trial.messages import CellSeen, CellsSeen
from flatout.tune.context import Context
from flatout.tune.request import TuneRequest

LONGEST = 200
"""Characters of a reason."""


def asked_for(request: TuneRequest) -> bool:
    """Whether the program is a notebook with cells that are marked so."""
    if request.module or not is_notebook(request.program):
        return False
    return kept_cells.any_marked(program_of(request.program).read_text(encoding="utf-8"))


def take_over(context: Context, scouted: Path) -> None:
    """From now on, trials begin with what these cells have made. The user is told which cells run in each of them."""
    seen = _read(scouted / DIRECTORY / FILE)
    name = Path(context.request.program).name
    for one in seen:
        if one.why_not:
            text = f"cell {one.number} of {name} is not kept: {clean(one.why_not, LONGEST)}"
        else:
            text = f"cell {one.number} of {name} ran once: trials begin with what it has made ({size(one.size)})"
        context.progress.say(text)
        context.notes.append(Note("info", f"{text[0].upper()}{text[1:]}."))
    if any(not one.why_not for one in seen):
        context.launch = replace(context.launch, kept=str((scouted / DIRECTORY).absolute()))


def remove(directory: Path) -> None:
    """All that a tune has kept."""
    for kept in directory.glob(f"*/{DIRECTORY}"):
        shutil.rmtree(kept, ignore_errors=True)


def _read(path: Path) -> tuple[CellSeen, ...]:
    """Nothing where the program did not come to such a cell."""
    try:
        return decode(path.read_bytes(), CellsSeen).cells
    except (OSError, InvalidMessage):
        return ()
