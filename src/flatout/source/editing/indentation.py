"""Moves whole lines of source to another indentation without changing the strings in them."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence


def string_lines(source: str) -> frozenset[int]:
    """Lines that begin inside of a string, counted from 1: white space at their beginning belongs to the string."""
    found: set[int] = set()
    opened: list[int] = []
    starts = {getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name)}
    ends = {getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in starts:
            opened.append(token.start[0])
        first = opened.pop() if token.type in ends and opened else token.start[0]
        if token.type == tokenize.STRING or token.type in ends:
            found.update(range(first + 1, token.end[0] + 1))
    return frozenset(found)


def moved(rows: Sequence[str], first: int, old: str, new: str, strings: frozenset[int]) -> list[str]:
    """Rows, of which the first has this number, with `new` in place of the indentation `old`."""
    return [
        new + row[len(old) :] if row.startswith(old) and row.strip() and number not in strings else row
        for number, row in enumerate(rows, first)
    ]
