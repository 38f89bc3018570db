"""Where the sources of a notebook's cells stand in its file, so that an edit changes the bytes of one cell alone."""

from __future__ import annotations

import json
import re
from typing import Any

from flatout.model.errors import Internal

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class NotFound(Internal):
    pass


def source_spans(text: str) -> dict[int, tuple[int, int]]:
    """By the number of a cell, counted from 1: where the value of its `source` begins and ends.

    Raises NotFound for a text that is not laid out as notebooks are.
    """
    try:
        cells = _members(text, _after(text, 0)).get("cells")
        if cells is None or text[cells[0]] != "[":
            raise NotFound
        found = {}
        for number, (start, _) in enumerate(_elements(text, cells[0]), start=1):
            if text[start] == "{" and (span := _members(text, start).get("source")) is not None:
                found[number] = span
        return found
    except (IndexError, ValueError, RecursionError):
        raise NotFound from None


def written(before: str, value: Any, ascii_only: bool) -> str:
    """A cell's new source, laid out as the old one: a text, or a list with a line of the file for each."""
    if not isinstance(value, list):
        return json.dumps(value, ensure_ascii=ascii_only)
    items = [json.dumps(item, ensure_ascii=ascii_only) for item in value]
    spaced = re.match(r"\[(\s*)", before)
    first = spaced[1] if spaced else ""
    last = re.search(r"(\s*)\]$", before)
    between = re.match(r"\[\s*" + r'"(?:[^"\\]|\\.)*"' + r"(\s*,\s*)", before)
    alone = f",{first}" if "\n" in first else ", "
    comma = between[1] if between is not None else alone
    if not items:
        return "[]"
    return f"[{first}{comma.join(items)}{last[1] if last else ''}]"


def _after(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _members(text: str, at: int) -> dict[str, tuple[int, int]]:
    """The values of an object that begins here, by name. A name that is there twice is the last one, as json has it."""
    if text[at] != "{":
        raise NotFound
    found: dict[str, tuple[int, int]] = {}
    at = _after(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _after(text, _after(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[name] = (at, end)
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    return found


def _elements(text: str, at: int) -> list[tuple[int, int]]:
    found = []
    at = _after(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append((at, end))
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    return found
