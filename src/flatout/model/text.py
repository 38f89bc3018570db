"""Text from somebody's source, made safe to print: one line, no controls, no invisible characters, bounded.

The views of a case have the same in `report.terminal.text`, which loads rich and takes longer than most checks do.
"""

from __future__ import annotations

LONGEST = 2000


def clean(value: object) -> str:
    text = str(value)[:LONGEST]
    if not text.isascii() or not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " if letter.isspace() else "\ufffd" for letter in text)
    return " ".join(text.split())
