"""One screen at the end of a run or a tune: what is slow, what to do, what it gives, whether to trust it, what to type.

It holds the limits below at any width from 80 columns on: where it would be longer, it tells less. What it leaves out
is one line with a count, and in the views `details` and `trials`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Case, Finding, Note
from flatout.report import words
from flatout.report.formatting import clean, duration, elide, sentence
from flatout.report.terminal.page import Page, Part
from flatout.source.notebooks.program import by_cells

WIDE = 100
"""Columns from which on a screen is a wide one."""
MOST_LINES, MOST_LINES_NARROW = 35, 45
NAMES = ("Python", "Keras", "Adam")
"""That begin a sentence and keep their capital inside of one."""
_WITHHELD = re.compile(r"The patch for (.+?) is withheld: ")
_NOT_FASTER = "it is not faster beyond the noise"
BUSY = ("Other programs used", "Something else had")
"""How notes begin of what else used the processors (the second in older cases): a run and the rounds of a tune have
one each."""
ROOM = 9
"""Columns of the labels at the left."""


@dataclass(frozen=True)
class Room:
    """How much may be told."""

    findings: int
    """In full; one line says how many more there are."""
    patch: int
    """Lines of the patch."""
    words: int = 2000
    """Characters of a long sentence."""


STAGES = (
    Room(3, 20),
    Room(3, 14),
    Room(2, 14),
    Room(2, 10, 400),
    Room(1, 10, 400),
    Room(1, 6, 250),
    Room(1, 4, 150),
    Room(0, 0, 100),
)
"""From much to little."""


def write(case: Case, page: Page, directory: Path | None, write_screen: Callable[[Case, Page, Room], None]) -> None:
    """The fullest form that fits."""
    most = MOST_LINES if page.width >= WIDE else MOST_LINES_NARROW
    draft = page
    for room in STAGES:
        draft = page.draft()
        write_screen(case, draft, room)
        _kept(draft, directory)
        if draft.length <= most:
            break
    page.take(draft)


def title(case: Case, page: Page) -> None:
    """The command, how long it took, how it ended."""
    program = case.program
    facts = [duration(1000 * program.seconds) if program.seconds else ""]
    if program.signal:
        facts.append(f"ended by signal {clean(program.signal, 30)}")
    elif program.exit_code:
        facts.append(f"exit code {program.exit_code}")
    told = ", ".join(filter(None, facts)) if case.kind == "run" else ""
    command = f"flatout {clean(case.kind, 20)} {command_words(case)}"
    page.line(elide(f"{command}   {told}".rstrip(), page.width), indent=0)
    if program.error and case.kind == "run":
        page.line(("The program failed: ", "bold"), clean(program.error, 300), indent=0)
    page.gap()


def command_words(case: Case) -> str:
    """The program and its arguments as the user typed them, without the interpreter."""
    words = list(case.program.command)
    if words and os.path.basename(words[0]).startswith("python"):
        words = words[1:]
    return by_cells(clean(shlex.join(words), 300))


def labelled(page: Page, label: str, *parts: Part) -> None:
    page.labelled(label, *parts, indent=0, room=ROOM, style="bold")


def notes(case: Case, page: Page, room: Room) -> None:
    """Warnings with what to do about them; remarks are counted. What the first sentence says is not said again."""
    told = [note for note in case.notes if note.level in ("warning", "error") and not _said(note, case)]
    serious = [_in_words(sentence(f"{note.text} {note.todo}".strip())) for note in told]
    busy = [text for text in serious if text.startswith(BUSY)]
    for text in [*[text for text in serious if text not in busy][:2], *busy[-1:]]:
        labelled(page, "Note", elide(text, room.words))


def _said(note: Note, case: Case) -> bool:
    """Whether the top of the screen has it already: how the program failed, or that there were too few steps."""
    if case.program.error and case.program.error in note.text:
        return True
    return note.text.startswith("Only ") and " seen" in note.text and "Only " in case.verdict


def _in_words(text: str) -> str:
    """Why there is no patch; its levers are called what they do."""
    found = _WITHHELD.match(text)
    if found is None:
        return text
    change, why = words.change(found[1].split(" + ")), text[found.end() :]
    if why.startswith(_NOT_FASTER):
        why = f"written into the source, it was not measurably faster{why.removeprefix(_NOT_FASTER)}"
    return f'There is no patch for "{change}": {why}'


def rest(page: Page, further: str, *counts: tuple[int, str]) -> None:
    """What is left out, in one line, and the command that shows it."""
    told = ", ".join(several(count, what) for count, what in counts if count)
    labelled(page, "More", f"{told}: " if told else "", ("flatout show --verbose", "bold"), further)


def several(count: int, what: str) -> str:
    """`1 trial`, `2 trials`; of several words the first is the noun, unless `more` stands before it."""
    if count == 1:
        return f"1 {what}"
    first, _, others = what.removeprefix("more ").partition(" ")
    return f"{count} {'more ' if what.startswith('more ') else ''}{first}s{f' {others}' if others else ''}"


def advice(finding: Finding) -> str:
    """What to do about a finding, without why a lever of it does not fit: that is in the view `details`."""
    return sentence(finding.fixes[0].advice).partition(" By hand: the lever")[0] if finding.fixes else ""


def lower(text: str) -> str:
    """Inside of a sentence; names keep their capital."""
    first = text.split(" ", 1)[0]
    return text if first in NAMES or first[1:] != first[1:].lower() else text[:1].lower() + text[1:]


def _kept(page: Page, directory: Path | None) -> None:
    if directory is not None:
        page.labelled("Kept in", elide(clean(near(directory)), page.width - ROOM, middle=True), indent=0, room=ROOM)


def near(directory: Path) -> str:
    """Relative to where the user is, where that is shorter."""
    try:
        relative = os.path.relpath(directory)
    except (OSError, ValueError):
        return str(directory)
    return relative if not relative.startswith("..") else str(directory)
